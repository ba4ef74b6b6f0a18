"""Which plugins are installed, and loading one of them by name. Only this module knows stevedore.

Every look scans the installed metadata afresh, in sorted order: stevedore's own caches know no distribution and
can be stale. Nothing is imported but the one plugin that is loaded.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from stevedore.driver import DriverManager

from rlcore.errors import nearest
from rlcore.plugins.errors import (
    PluginConflict,
    PluginContractError,
    PluginIncompatible,
    PluginLoadError,
    PluginNotFound,
    RLCoreNotInstalled,
    RLPluginError,
)
from rlcore.plugins.info import PLUGIN_API_VERSION, PluginInfo, read_info

DISABLE = "RLCORE_DISABLE_PLUGINS"
SLOW_SECONDS = 10.0  # after this the user is told which plugin is being waited for


@dataclass(frozen=True)
class Kind:
    """:ivar name: on the command line. ``words``: in an error. ``selector``: the argument that takes its name."""

    name: str
    group: str
    words: str
    selector: str


GRAPH_BUILDER = Kind("graph-builder", "rlcore.graph_builders", "graph builder", "backend")
EXECUTOR = Kind("executor", "rlcore.executors", "executor", "executor")
COMPONENTS = Kind("components", "rlcore.components", "component pack", "components")
HOOKS = Kind("hooks", "rlcore.hooks", "hook plugin", "hooks")
KINDS = {kind.name: kind for kind in (GRAPH_BUILDER, EXECUTOR, COMPONENTS, HOOKS)}

OURS = {  # what is installed to get a plugin of this project
    (GRAPH_BUILDER, "torch"): "rl-torch",
    (GRAPH_BUILDER, "tf"): "rl-tf[cpu]",
    (EXECUTOR, "ray"): "rl-ray",
    (EXECUTOR, "horovod"): "rl-horovod",
}


@dataclass(frozen=True)
class Found:
    """One installed entry point.

    :ivar name: normalised: lower case, ``-`` for ``_``.
    :ivar value: ``module:Class``.
    """

    kind: Kind
    name: str
    value: str
    entry_point: EntryPoint

    @property
    def dist(self) -> str:
        return self._dist.name if self._dist is not None else "unknown distribution"

    @property
    def version(self) -> str:
        return self._dist.version if self._dist is not None else ""

    @property
    def label(self) -> str:
        return f"{self.dist} {self.version}".strip()

    @property
    def qualified(self) -> str:
        return f"{self.dist}:{self.name}"

    @property
    def origin(self) -> str:
        return f"{self.kind.words} '{self.name}' ({self.label}, {self.value})"

    @property
    def _dist(self) -> Distribution | None:
        return self.entry_point.dist

    @cached_property
    def info(self) -> PluginInfo | None:
        """What its source says, read without importing it."""
        return read_info(self.value)

    @property
    def requirements(self) -> list[Requirement]:
        """What its distribution requires here, without the extras."""
        texts = (self._dist.requires or ()) if self._dist is not None else ()
        found = [Requirement(text) for text in texts]
        return [r for r in found if r.marker is None or r.marker.evaluate({"extra": ""})]

    @property
    def install(self) -> str:
        """The command that brings the plugin and what it needs."""
        info = self.info
        return f"pip install '{(info.install if info else '') or OURS.get((self.kind, self.name)) or self.dist}'"

    @property
    def source(self) -> str | None:
        """Folder of an editable installation."""
        text = self._dist.read_text("direct_url.json") if self._dist is not None else None
        data = json.loads(text) if text else {}
        url = str(data.get("url", ""))
        editable = data.get("dir_info", {}).get("editable") and url.startswith("file://")
        return url.removeprefix("file://") if editable else None

    @property
    def switched_off(self) -> bool:
        words = {normalised(w) for w in os.environ.get(DISABLE, "").split(",") if w.strip()}
        names = {self.name, normalised(self.dist), normalised(self.qualified)}
        return bool(words & names) or ("all" in words and self.dist != "rlcore")

    def problem(self) -> RLPluginError | None:
        """Why it can't be used, as far as that shows without an import: rlcore's version, what it needs."""
        return self._other_rlcore() or self._other_api(self.info) or self.missing(self.info)

    def _other_rlcore(self) -> PluginIncompatible | None:
        from rlcore.version import __version__

        for requirement in self.requirements:
            if canonicalize_name(requirement.name) == "rlcore" and not requirement.specifier.contains(
                __version__, prereleases=True
            ):
                return PluginIncompatible(
                    f"{self.label} needs rlcore{requirement.specifier}, but rlcore {__version__} is running "
                    f"({self.kind.words} '{self.name}' was not imported).\n  fix:       pip install -U '{self.dist}'",
                    **self.about(),
                )
        return None

    def _other_api(self, info: PluginInfo | None) -> PluginIncompatible | None:
        if info is None or _api_fits(info.api_version):
            return None
        return PluginIncompatible(
            f"{self.label} ({self.kind.words} '{self.name}') speaks plugin API {info.api_version}; this rlcore speaks "
            f"{PLUGIN_API_VERSION}.\n  fix:       pip install -U rlcore '{self.dist}'",
            **self.about(),
        )

    def missing(self, info: PluginInfo | None) -> PluginLoadError | None:
        """The error of requirements that nothing installed satisfies."""
        wanted = [str(r) for r in self.requirements if canonicalize_name(r.name) != "rlcore"]
        lines = [why for text in (*wanted, *(info.needs if info else ())) if (why := unmet(text))]
        if not lines:
            return None
        return PluginLoadError(
            f"{self.origin} lacks what it needs:\n  {'; '.join(lines)}\n  fix:       {self.install}",
            **self.about(),
        )

    def about(self) -> dict[str, Any]:
        """For the errors that speak of it."""
        return {"kind": self.kind.words, "name": self.name, "dist": self.label}


def scan(kind: Kind) -> list[Found]:
    """All installed plugins of a kind, sorted by name and distribution."""
    found = [Found(kind, normalised(e.name), e.value, e) for e in entry_points(group=kind.group)]
    return sorted(found, key=lambda f: (f.name, f.dist, f.value))


def pick(kind: Kind, name: str) -> Found:
    """The one plugin that a name means.

    :param name: ``torch``, or ``rl-torch:torch`` where two distributions provide it.
    :raises PluginNotFound: with the nearest name and how to install it.
    :raises PluginConflict: if more than one distribution provides it.
    """
    known = scan(kind)
    dist, _, plain = normalised(name).rpartition(":")
    matches = [f for f in known if f.name == plain and (not dist or normalised(f.dist) == dist)]
    usable = [f for f in matches if not f.switched_off]
    if len(usable) == 1:
        return usable[0]
    about: dict[str, Any] = {"kind": kind.words, "name": name, "candidates": [f"{f.name} ({f.label})" for f in known]}
    if len(usable) > 1:
        who = ", ".join(f"{f.label} ({f.value})" for f in usable)
        raise PluginConflict(
            f"{len(usable)} packages provide {kind.words} '{plain}': {who}.\n"
            f"  fix:       uninstall one, or select it as '{usable[0].qualified}'",
            **about,
        )
    if matches:
        raise PluginNotFound(
            f"{kind.words} '{name}' ({matches[0].label}) is switched off.\n  fix:       take it out of {DISABLE}",
            **about,
        )
    if not scan(GRAPH_BUILDER):
        raise RLCoreNotInstalled(
            "rlcore runs from a folder without package metadata, so no plugin can be found.\n"
            "  fix:       pip install -e .",
            **about,
        )
    raise PluginNotFound(_not_found(kind, plain, known) + stale_hint(kind, plain), **about)


def load(found: Found) -> type:
    """Import a plugin's class.

    :raises PluginIncompatible: before the import, if it requires another rlcore; after it, for another plugin API.
    :raises PluginLoadError: if the import fails in any way, an exit included.
    :raises PluginContractError: if the entry point names no class with an ``info``.
    """
    error: RLPluginError | None = found._other_rlcore()
    if error is not None:
        raise error
    try:
        with _notice_if_slow(found):
            plugin_class: Any = _Driver(found).driver
    except (Exception, SystemExit) as e:
        raise import_failed(found, e) from e
    if not isinstance(plugin_class, type):
        what = "a module" if type(plugin_class).__name__ == "module" else f"a {type(plugin_class).__name__}"
        raise PluginContractError(
            f"{found.origin}: the entry point names {what}, not a plugin class.\n"
            f"  fix:       write it as 'package.module:Class' in {found.dist}'s pyproject.toml",
            **found.about(),
        )
    info = getattr(plugin_class, "info", None)
    if not isinstance(info, PluginInfo):
        raise PluginContractError(
            f"{found.origin} has no info.\n"
            f'  fix:       write info = PluginInfo(api_version="{PLUGIN_API_VERSION}") into the class',
            **found.about(),
        )
    error = found._other_api(info)
    if error is not None:
        raise error
    return plugin_class


def import_failed(found: Found, error: BaseException) -> PluginLoadError:
    """What went wrong while a plugin or its framework was imported, with the root cause and the cure."""
    text = " ".join(str(error).split())
    cause = "it tried to end the program" if isinstance(error, SystemExit) else f"{type(error).__name__}: {text}"
    missing = isinstance(error, ModuleNotFoundError)
    cure = f"{found.install}\n  " if missing else ""
    return PluginLoadError(
        f"{found.origin} failed to import:\n  {cause}\n  fix:       {cure}{'details:' if missing else 'see'}"
        f"{'   ' if missing else ' '}rlcore doctor {found.name}",
        **found.about(),
    )


def unmet(text: str) -> str | None:
    """What is wrong with a requirement (``a>=1 | b>=2``: one of them is enough); None if it is met."""
    reasons = []
    for part in text.split("|"):
        try:
            requirement = Requirement(part.strip())
            version = distribution(requirement.name).version
        except InvalidRequirement:
            return f"'{part.strip()}' is no requirement"
        except PackageNotFoundError:
            reasons.append(f"{part.strip()}: not installed")
            continue
        if requirement.specifier.contains(version, prereleases=True):
            return None
        reasons.append(f"{part.strip()}: {version} is installed")
    return " or ".join(reasons)


def versions_of(text: str) -> str:
    """``torch 2.13.0`` for a requirement that is met."""
    for part in text.split("|"):
        try:
            found = distribution(Requirement(part.strip()).name)
            return f"{found.name} {found.version}"
        except PackageNotFoundError:
            continue
    return ""


def stale_names(found: Found) -> Mapping[str, str]:
    """Entry points that an editable project's pyproject.toml declares otherwise than the installed metadata does.

    :return: ``group:name`` -> what is wrong; empty if all is right or the project is not editable.
    """
    import tomllib

    if found.source is None:
        return {}
    try:
        with open(os.path.join(found.source, "pyproject.toml"), "rb") as file:
            declared = tomllib.load(file).get("project", {}).get("entry-points", {})
    except (OSError, tomllib.TOMLDecodeError):
        return {}
    wrong = {}
    for kind in KINDS.values():
        here = {f.entry_point.name: f.value for f in scan(kind) if f.dist == found.dist}
        there = declared.get(kind.group, {})
        for name in sorted(set(here) | set(there)):
            if here.get(name) != there.get(name):
                wrong[f"{kind.group}:{name}"] = f"pyproject.toml has {there.get(name)}, installed is {here.get(name)}"
    return wrong


class _Driver(DriverManager):  # type: ignore[misc, type-arg, unused-ignore]
    """stevedore's driver on a fresh scan, narrowed to the one distribution that was picked."""

    def __init__(self, found: Found) -> None:
        self._found = found
        super().__init__(found.kind.group, found.entry_point.name, on_load_failure_callback=_reraise)

    def list_entry_points(self) -> list[EntryPoint]:
        wanted = self._found
        return [f.entry_point for f in scan(wanted.kind) if (f.dist, f.value) == (wanted.dist, wanted.value)]


def _reraise(manager: Any, entry_point: EntryPoint, error: BaseException) -> None:
    raise error


@contextmanager
def _notice_if_slow(found: Found) -> Iterator[None]:
    def notice() -> None:
        print(
            f"rlcore: still importing {found.origin} after {SLOW_SECONDS:.0f} s. Ctrl-C ends it; "
            f"`rlcore doctor {found.name}` examines it alone, {DISABLE}={found.name} switches it off.",
            file=sys.stderr,
        )

    timer = threading.Timer(SLOW_SECONDS, notice)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _not_found(kind: Kind, name: str, known: list[Found]) -> str:
    installed = ", ".join(f"{f.name} ({f.label})" for f in known) or "none"
    others = [k for k in KINDS.values() if k != kind]
    other = next((k for k in others if any(f.name == name for f in scan(k)) or (k, name) in OURS), None)
    if (kind, name) in OURS:
        text = f"{kind.words} '{name}' isn't installed.\n  fix:       pip install '{OURS[kind, name]}'"
    elif other:
        words = f"{'an' if other.words[0] in 'aeiou' else 'a'} {other.words}"
        text = f"'{name}' is {words}, not a {kind.words}. Did you mean {other.selector}=\"{name}\"?"
        text = text.replace("not a executor", "not an executor")
    else:
        text = f"{kind.words} '{name}' isn't known.{nearest(name, [*(f.name for f in known), *_ours(kind)])}"
    return f"{text}\n  installed: {installed}"


def _ours(kind: Kind) -> list[str]:
    return [name for k, name in OURS if k == kind]


def stale_hint(kind: Kind, name: str) -> str:
    """Which editable project declares the name without having been installed again; empty if none does."""
    for found in (f for k in KINDS.values() for f in scan(k)):
        if f"{kind.group}:{name}" in stale_names(found):
            return f"\n  fix:       {found.dist} declares it, but was installed before: pip install -e {found.source}"
    return ""


def normalised(name: str) -> str:
    """As names are compared: lower case, ``-`` for ``_`` and dots."""
    return re.sub(r"[_.]+", "-", name.strip().lower())


def _api_fits(version: str) -> bool:
    try:
        (major, minor), (ours_major, ours_minor) = (map(int, v.split(".")) for v in (version, PLUGIN_API_VERSION))
    except ValueError:
        return False
    return major == ours_major and minor <= ours_minor
