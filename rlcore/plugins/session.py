"""Session: the plugins of one run, in one pluggy manager. Two sessions share nothing."""

from __future__ import annotations

import hashlib
import os
import uuid
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

from rlcore.errors import RLCoreError
from rlcore.plugins import discovery, hookspecs
from rlcore.plugins.contract import check_hooks
from rlcore.plugins.discovery import COMPONENTS, EXECUTOR, GRAPH_BUILDER, HOOKS, Found, Kind
from rlcore.plugins.errors import (
    PluginConflict,
    PluginContractError,
    PluginSetMismatch,
    PluginWarning,
    RLPluginError,
)
from rlcore.plugins.hooks import Hooks
from rlcore.registry import Registry

if TYPE_CHECKING:
    from rlcore.backend import GraphBuilder
    from rlcore.executor import Executor

MAKES = {GRAPH_BUILDER: "rlcore_make_graph_builder", EXECUTOR: "rlcore_make_executor"}
ENV_HOOKS, ENV_ON_ERROR = "RLCORE_HOOKS", "RLCORE_ON_HOOK_ERROR"

_open: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()


class Session:
    """Drivers by name, component packs and observers.

    :param hooks: observers: names of hook plugins, or plugin objects. Those named in ``RLCORE_HOOKS`` if None, or
        else all that are installed. Objects stay in the process in which they were given.
    :param on_hook_error: what an exception of an observer does: ``raise``, ``warn`` or ``disable``.
        ``RLCORE_ON_HOOK_ERROR``, or ``raise``, if None.
    :raises RLPluginError: if a hook plugin that was named is missing or broken. A broken one that is merely
        installed is left out with a :class:`PluginWarning`.

    Sent to another process, it opens there with the same plugins, and refuses others.
    """

    def __init__(self, hooks: Sequence[Any] | str | None = None, *, on_hook_error: str | None = None) -> None:
        self.id = uuid.uuid4().hex
        self._prepare(on_hook_error or os.environ.get(ENV_ON_ERROR) or "raise")
        if hooks is None and ENV_HOOKS in os.environ:
            hooks = [name.strip() for name in os.environ[ENV_HOOKS].split(",") if name.strip()]
        self._add_packs()
        if isinstance(hooks, str):
            hooks = [hooks]
        if hooks is None:
            for found in discovery.scan(HOOKS):
                self._add_if_sound(found)
        for hook in hooks or ():
            if isinstance(hook, str):
                self.add(discovery.pick(HOOKS, hook))
            else:
                self._register(hook, name=type(hook).__name__, kind=HOOKS, label="given in code")

    def _prepare(self, on_error: str) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.registry = Registry()
        self.plugins: dict[str, Found] = {}  # registered name -> what it is
        self.on_hook_error = on_error
        self._builders: dict[str, GraphBuilder] = {}
        self._labels: dict[str, tuple[str, str, str]] = {}  # registered name -> kind, name, distribution
        self.hooks = Hooks(self.manager, self._labels, on_error)
        self.manager.hook.rlcore_register_components.call_historic(kwargs={"registry": self.registry})
        _open[self.id] = self

    def _add_packs(self) -> None:
        found = discovery.scan(COMPONENTS)
        for pack in sorted(found, key=lambda f: f.dist != "rlcore"):  # rlcore's own names first
            self._add_if_sound(pack)
        self.tell_gymnasium()

    # -- drivers ---------------------------------------------------------------------------------------------------
    def graph_builder(self, backend: str | GraphBuilder) -> GraphBuilder:
        """The graph builder of a name; an object is returned as it is.

        :raises RLPluginError: says what is missing or broken and how to mend it.
        """
        from rlcore.backend import GraphBuilder

        if isinstance(backend, GraphBuilder):
            return backend
        if backend not in self._builders:
            self._builders[backend] = self._make(GRAPH_BUILDER, backend, GraphBuilder, {})
        return self._builders[backend]

    def executor(self, executor: str | Executor, options: Mapping[str, Any] | None = None) -> Executor:
        """The executor of a name, bound to this session; an object is bound and returned as it is.

        :raises RLPluginError: says what is missing or broken and how to mend it.
        :raises ConfigError: for an option that the executor does not have.
        """
        from rlcore.executor import Executor

        made = executor
        if not isinstance(executor, Executor):
            made = self._make(EXECUTOR, executor, Executor, {"options": dict(options or {})})
        assert isinstance(made, Executor)
        made.session = self
        return made

    def check_executor(self, executor: Any) -> None:
        """:raises PluginNotFound: unless it is the name of an installed executor, or an object."""
        if isinstance(executor, str):
            discovery.pick(EXECUTOR, executor)

    def executors_that_can(self, capability: str) -> list[str]:
        """Names of the installed executors that declare a capability, read without importing them."""
        return sorted({f.name for f in discovery.scan(EXECUTOR) if f.info and capability in f.info.capabilities})

    def _make(self, kind: Kind, name: str, contract: type, arguments: Mapping[str, Any]) -> Any:
        found = discovery.pick(kind, name)
        key = self.add(found)
        plugin: Any = self.manager.get_plugin(key)
        missing = found.missing(plugin.info)
        if missing is not None:
            raise missing
        hook = MAKES[kind]
        others = {self.manager.get_plugin(k) for k, f in self.plugins.items() if f.kind is kind and k != key}
        try:
            made = self.manager.subset_hook_caller(hook, others)(**arguments)
        except RLCoreError:
            raise
        except (ImportError, SystemExit) as e:
            raise discovery.import_failed(found, e) from e
        except Exception as e:
            raise self.hooks.blame(hook, key, e) from e
        about: dict[str, Any] = {"kind": kind.words, "name": found.name, "dist": found.label}
        if made is None:
            raise PluginContractError(f"{found.origin}: {hook} returned None", **about)
        if not isinstance(made, contract):
            expected = f"{contract.__module__}.{contract.__qualname__}"
            raise PluginContractError(f"{found.origin} made a {type(made).__name__}, not a {expected}", **about)
        return made

    # -- registration ----------------------------------------------------------------------------------------------
    def _add_if_sound(self, found: Found) -> None:
        if found.switched_off:
            return
        try:
            self.add(found)
        except RLPluginError as e:
            off = f"  or switch it off: {discovery.DISABLE}={found.name}"
            warnings.warn(f"{e}\n{off}", PluginWarning, stacklevel=4)

    def add(self, found: Found) -> str:
        """Load and register a plugin, once; the name that it is registered under.

        :raises RLPluginError: if it is broken.
        """
        key = f"{found.kind.name} {found.qualified}"
        if key not in self.plugins:
            plugin_class = discovery.load(found)
            try:
                plugin = plugin_class()
            except Exception as e:
                raise PluginContractError(
                    f"{found.origin}: {plugin_class.__name__}() failed, a plugin class takes no arguments:\n  "
                    f"{type(e).__name__}: {e}",
                    kind=found.kind.words,
                    name=found.name,
                    dist=found.label,
                ) from e
            self._register(plugin, name=found.name, kind=found.kind, label=found.label, key=key)
            self.plugins[key] = found
        return key

    def _register(self, plugin: Any, *, name: str, kind: Kind, label: str, key: str | None = None) -> None:
        requires = [MAKES[kind]] if kind in MAKES else ["rlcore_register_components"] if kind is COMPONENTS else []
        check_hooks(plugin, kind=kind.words, name=name, label=label, requires=requires)
        key = key or f"{kind.name} {name}"
        while self.manager.has_plugin(key):
            key += "+"
        self._labels[key] = kind.words, name, label
        try:
            with self.registry.provided_by(label):
                self.manager.register(plugin, name=key)
        except Exception as e:
            if self.manager.has_plugin(key):
                self.manager.unregister(name=key)
            if isinstance(e, RLCoreError):
                about: dict[str, Any] = {"kind": kind.words, "name": name, "dist": label}
                raise PluginConflict(f"{kind.words} '{name}' ({label}): {e}", **about) from e
            raise self.hooks.blame("rlcore_register_components", key, e) from e
        self.hooks.changed()

    def tell_gymnasium(self) -> None:
        """Environments of packs get their ids; they are imported when they are made."""
        if not self.registry.environments:
            return
        import gymnasium

        for env in self.registry.environments.values():
            known = gymnasium.registry.get(env.id)
            if known is not None and known.entry_point != env.path:
                warnings.warn(
                    f"environment '{env.id}' of {env.provider} is left out: Gymnasium knows that id as "
                    f"{known.entry_point}.\n  fix:       the pack must choose another id",
                    PluginWarning,
                    stacklevel=4,
                )
            if known is None:
                gymnasium.register(
                    env.id,
                    env.path,
                    max_episode_steps=env.max_episode_steps,
                    kwargs=dict(env.kwargs),
                    order_enforce=True,
                )

    # -- across processes --------------------------------------------------------------------------------------------
    @property
    def plugin_set(self) -> list[tuple[str, str, str, str, str]]:
        """(kind, name, distribution, version, entry point) of every plugin in use, sorted."""
        return sorted((f.kind.name, f.name, f.dist, f.version, f.value) for f in self.plugins.values())

    @property
    def fingerprint(self) -> str:
        """A short hash of :attr:`plugin_set`."""
        return hashlib.sha256(repr(self.plugin_set).encode()).hexdigest()[:16]

    def __reduce__(self) -> Any:
        return _reopen, (self.id, self.on_hook_error, self.plugin_set)


def _reopen(session_id: str, on_error: str, plugin_set: list[tuple[str, str, str, str, str]]) -> Session:
    """The session of a driver, in a worker's process: the same plugins, in the same versions, or an error."""
    if session_id in _open:
        return _open[session_id]
    session = Session.__new__(Session)
    session.id = session_id
    session._prepare(on_error)
    for kind, name, dist, version, value in plugin_set:
        try:
            found = discovery.pick(discovery.KINDS[kind], f"{dist}:{name}")
            same, here = (found.version, found.value) == (version, value), f"{found.label} ({found.value})"
        except RLPluginError as e:
            same, here = False, str(e).splitlines()[0]
        if not same:
            raise PluginSetMismatch(
                f"the driver has {discovery.KINDS[kind].words} '{name}' of {dist} {version} ({value}); "
                f"process {os.getpid()} has: {here}.\n  fix:       install the same versions for all processes",
                kind=discovery.KINDS[kind].words,
                name=name,
            )
    # rlcore's own names first, as in the driver; drivers are loaded when they are asked for.
    for kind, name, dist, *_ in sorted(plugin_set, key=lambda p: p[2] != "rlcore"):
        if kind in (COMPONENTS.name, HOOKS.name):
            session.add(discovery.pick(discovery.KINDS[kind], f"{dist}:{name}"))
    session.tell_gymnasium()
    return session


def make_graph_builder(backend: str | GraphBuilder) -> GraphBuilder:
    """The graph builder of a name, without a run; an object is returned as it is. Loads that one plugin only.

    :raises RLPluginError: says what is missing or broken and how to mend it.
    """
    return bare_session().graph_builder(backend)


def make_executor(executor: str | Executor, options: Mapping[str, Any] | None = None) -> Executor:
    """The executor of a name, without a run; an object is returned as it is. Loads that one plugin only.

    :raises RLPluginError: says what is missing or broken and how to mend it.
    """
    return bare_session().executor(executor, options)


def bare_session() -> Session:
    """A session without packs and observers."""
    session = Session.__new__(Session)
    session.id = uuid.uuid4().hex
    session._prepare("raise")
    return session
