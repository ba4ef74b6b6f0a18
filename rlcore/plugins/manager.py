"""Find a driver by name (stevedore), register it with the hook specs (pluggy), and let it make its object.

Only this module knows stevedore. Each load scans the installed metadata afresh, in a sorted order, and
imports nothing but the one plugin asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import pluggy
from stevedore.driver import DriverManager

from rlcore.errors import nearest
from rlcore.plugins import hookspecs
from rlcore.plugins.errors import PluginConflict, PluginContractError, PluginLoadError, PluginNotFound, RLPluginError

if TYPE_CHECKING:
    from rlcore.backend import GraphBuilder
    from rlcore.executor import Executor

GROUPS = {"graph builder": "rlcore.graph_builders", "executor": "rlcore.executors"}
OURS = {  # (kind, name) -> distribution, for the hint when it isn't installed
    ("graph builder", "torch"): "rl-torch",
    ("graph builder", "tf"): "rl-tf[cpu]",
    ("executor", "ray"): "rl-ray",
    ("executor", "horovod"): "rl-horovod",
}


def find(kind: str) -> list[EntryPoint]:
    """Entry points of a kind, sorted by name and distribution. Imports no plugin."""
    found = {(e.name, _dist(e), e.value): e for e in entry_points(group=GROUPS[kind])}
    return [found[key] for key in sorted(found)]


def make_graph_builder(backend: str | GraphBuilder) -> GraphBuilder:
    """The graph builder of a name; an object is returned as it is.

    :raises RLPluginError: says what is missing or broken and how to mend it.
    """
    from rlcore.backend import GraphBuilder

    if isinstance(backend, GraphBuilder):
        return backend
    return _make("graph builder", backend, "rlcore_make_graph_builder", {}, GraphBuilder)  # type: ignore[no-any-return]


def make_executor(executor: str | Executor, options: Mapping[str, Any] | None = None) -> Executor:
    """The executor of a name; an object is returned as it is.

    :raises RLPluginError: says what is missing or broken and how to mend it.
    """
    from rlcore.executor import Executor

    if isinstance(executor, Executor):
        return executor
    arguments = {"options": dict(options or {})}
    return _make("executor", executor, "rlcore_make_executor", arguments, Executor)  # type: ignore[no-any-return]


class _FreshDriver(DriverManager):  # type: ignore[misc, type-arg, unused-ignore]
    """stevedore's driver without its caches, which know no distribution and can be stale."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind = kind
        super().__init__(GROUPS[kind], name, on_load_failure_callback=_reraise)

    def list_entry_points(self) -> list[EntryPoint]:
        return find(self._kind)


def _reraise(manager: Any, entry_point: EntryPoint, error: BaseException) -> None:
    raise error


def _make(kind: str, name: str, hook: str, arguments: Mapping[str, Any], contract: type) -> Any:
    entry_point = _pick(kind, name)
    origin = f"{kind} '{name}' ({_label(entry_point)}, {entry_point.value})"
    try:
        plugin_class = _FreshDriver(kind, name).driver
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        manager.register(plugin_class(), name=name)
        made = getattr(manager.hook, hook)(**arguments)
    except RLPluginError:
        raise
    except ImportError as e:
        # Our own distributions' extras bring their frameworks; a stranger's is installed once more.
        package = OURS.get((kind, name), "") if _dist(entry_point).startswith("rl-") else ""
        cure = f"pip install '{package or _dist(entry_point)}'"
        raise PluginLoadError(
            f"{origin} failed to import:\n  {type(e).__name__}: {e}\n  fix: {cure}", kind=kind, name=name
        ) from e
    if made is None:
        raise PluginContractError(f"{origin} does not implement {hook}", kind=kind, name=name)
    if not isinstance(made, contract):
        expected = f"{contract.__module__}.{contract.__qualname__}"
        raise PluginContractError(f"{origin} made a {type(made).__name__}, not a {expected}", kind=kind, name=name)
    return made


def _pick(kind: str, name: str) -> EntryPoint:
    known = find(kind)
    matches = [e for e in known if e.name == name]
    if len(matches) > 1:
        who = ", ".join(f"{_label(e)} ({e.value})" for e in matches)
        raise PluginConflict(
            f"{len(matches)} packages provide {kind} '{name}': {who}.\n  fix: uninstall all but one",
            kind=kind,
            name=name,
        )
    if matches:
        return matches[0]
    installed = ", ".join(f"{e.name} ({_label(e)})" for e in known)
    if not installed:
        raise PluginNotFound(
            "rlcore runs from a checkout without package metadata, so no plugin can be found.\n  fix: pip install -e .",
            kind=kind,
            name=name,
        )
    other = next((k for k in GROUPS if k != kind and any(e.name == name for e in find(k))), None)
    if (kind, name) in OURS:
        text = f"{kind} '{name}' isn't installed.\n  fix:       pip install '{OURS[kind, name]}'"
    elif other or any(k != kind and n == name for k, n in OURS):
        text = f"'{name}' is no {kind}; it is {'an executor' if kind == 'graph builder' else 'a graph builder'}."
    else:
        hint = nearest(name, [e.name for e in known] + [n for k, n in OURS if k == kind])
        text = f"{kind} '{name}' isn't known.{hint}"
    raise PluginNotFound(f"{text}\n  installed: {installed}", kind=kind, name=name)


def _dist(entry_point: EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist is not None else "unknown distribution"


def _label(entry_point: EntryPoint) -> str:
    return f"{_dist(entry_point)} {entry_point.dist.version}" if entry_point.dist is not None else _dist(entry_point)
