"""What ``rlcore plugins`` and ``rlcore doctor`` know: a table read without an import, and each plugin tried alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from packaging.utils import canonicalize_name

from rlcore.errors import nearest
from rlcore.plugins import discovery
from rlcore.plugins.discovery import KINDS, OURS, Found, Kind, scan
from rlcore.plugins.errors import PluginConflict, PluginIncompatible, PluginNotFound
from rlcore.plugins.events import CheckResult

TIME_LIMIT = 60.0


@dataclass(frozen=True)
class Row:
    """One line of ``rlcore plugins``.

    :ivar status: ``ready``, ``missing`` (what it needs), ``incompatible``, ``conflict`` or ``off``.
    :ivar needs: what it needs, with what is installed of it. ``fix``: a command, where something is to be done.
    """

    kind: str
    name: str
    distribution: str
    version: str
    editable: bool
    api: str
    status: str
    needs: list[str]
    capabilities: list[str]
    fix: str
    summary: str


def table() -> list[Row]:
    """All installed plugins. Imports none of them."""
    return [_row(found, scan(kind)) for kind in KINDS.values() for found in scan(kind)]


def not_installed() -> dict[str, str]:
    """Plugins of this project that are not installed: ``kind name`` -> command."""
    present = {(kind.name, found.name) for kind in KINDS.values() for found in scan(kind)}
    missing = {(kind, name): package for (kind, name), package in OURS.items() if (kind.name, name) not in present}
    return {f"{kind.words} {name}": f"pip install '{package}'" for (kind, name), package in missing.items()}


def _row(found: Found, all_of_kind: list[Found]) -> Row:
    info = found.info
    problem = found.problem()
    rivals = [f for f in all_of_kind if f.name == found.name and not f.switched_off]
    status, fix = "ready", ""
    if problem is not None:
        status = "incompatible" if isinstance(problem, PluginIncompatible) else "missing"
        fix = str(problem).rpartition("fix:")[2].strip()
    if len(rivals) > 1:
        status, fix = "conflict", f"select it as {found.qualified}"
    if found.switched_off:
        status, fix = "off", f"take it out of {discovery.DISABLE}"
    wanted = (
        [str(r) for r in found.requirements if canonicalize_name(r.name) != "rlcore"] if found.dist != "rlcore" else []
    )
    needs = [
        f"{text}: {discovery.versions_of(text) or 'not installed'}" for text in (*wanted, *(info.needs if info else ()))
    ]
    return Row(
        kind=found.kind.name,
        name=found.name,
        distribution=found.dist,
        version=found.version,
        editable=found.source is not None,
        api=info.api_version if info else "?",
        status=status,
        needs=needs,
        capabilities=list(info.capabilities) if info else [],
        fix=fix,
        summary=info.summary if info else "",
    )


@dataclass(frozen=True)
class Diagnosis:
    """What ``rlcore doctor`` says of one plugin.

    :ivar checks: each with what was found and, where it is not ok, how to mend it.
    """

    kind: str
    name: str
    distribution: str
    checks: list[CheckResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


def examine(names: Sequence[str] = (), *, deep: bool = False, time_limit: float = TIME_LIMIT) -> list[Diagnosis]:
    """Load each plugin in a process of its own.

    :param names: of plugins (``torch``, ``rl-torch:torch``, ``executor/ray``); all if empty.
    :param time_limit: seconds for each.
    :raises PluginNotFound: for a name that is not installed.
    """
    chosen = [found for name in names for found in _named(name)] or [f for kind in KINDS.values() for f in scan(kind)]
    return [_examine(found, deep, time_limit) for found in chosen]


def find_kind(name: str) -> Found:
    """The one plugin of a name, of whatever kind.

    :raises PluginNotFound: if there is none; :raises PluginConflict: if there are several.
    """
    found = _named(name)
    if len(found) > 1:
        which = ", ".join(f"{f.kind.name}/{f.qualified}" for f in found)
        raise PluginConflict(f"'{name}' is the name of several plugins; say which: {which}", kind="plugin", name=name)
    return found[0]


def _named(name: str) -> list[Found]:
    kind_name, slash, plain = name.rpartition("/")
    if slash and kind_name not in KINDS:
        raise PluginNotFound(f"no kind '{kind_name}'. Known: {', '.join(KINDS)}", kind="plugin", name=name)
    kinds = [KINDS[kind_name]] if slash else list(KINDS.values())
    known = [f for kind in kinds for f in scan(kind)]
    found = [f for f in known if discovery.normalised(plain) in (f.name, discovery.normalised(f.qualified))]
    if not found:
        _missing(plain, kinds, known)
    return found


def _missing(name: str, kinds: list[Kind], known: list[Found]) -> None:
    for kind in kinds:
        if (kind, name) in OURS or discovery.stale_hint(kind, name):
            discovery.pick(kind, name)  # raises what there is to say
    hint = nearest(name, [f.name for f in known])
    installed = ", ".join(f"{f.name} ({f.label})" for f in known)
    raise PluginNotFound(f"no plugin '{name}'.{hint}\n  installed: {installed}", kind="plugin", name=name)


def _examine(found: Found, deep: bool, time_limit: float) -> Diagnosis:
    checks = [_conflicts(found), _metadata(found)]
    problem = found.problem()
    if problem is not None:
        checks.append(CheckResult("requirements", False, str(problem)))
    elif found.switched_off:
        checks.append(CheckResult("requirements", True, f"switched off by {discovery.DISABLE}, tried all the same"))
    else:
        there = ", ".join(discovery.versions_of(text) for text in _wanted(found))
        checks.append(CheckResult("requirements", True, there or "nothing beyond rlcore"))
    if not isinstance(problem, PluginIncompatible):  # that one is never imported
        report, died, noise = probe(found, deep, time_limit)
        checks += _loaded(report, died, noise)
    return Diagnosis(found.kind.name, found.name, found.label, checks)


def probe(found: Found, deep: bool, time_limit: float) -> tuple[dict[str, Any], str, str]:
    """Load a plugin in a process of its own.

    :return: what it reported; how the process ended, if not well; what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        words = [sys.executable, "-m", "rlcore.plugins.probe", found.kind.name, found.qualified, path]
        env = {k: v for k, v in os.environ.items() if k != discovery.DISABLE} | {"PYTHONUNBUFFERED": "1"}
        died, noise = "", ""
        try:
            # A session of its own: what it started is ended with it.
            process = subprocess.Popen(
                words + (["--deep"] if deep else []),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
            )
            try:
                noise = process.communicate(timeout=time_limit)[0].decode(errors="replace").strip()
                if process.returncode:
                    how = (
                        f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
                    )
                    died = f"its process ended with {how}"
            except subprocess.TimeoutExpired:
                died = f"it did not end within {time_limit:.0f} s"
            finally:
                rest = _end(process)
                noise = noise or rest
        except OSError as e:
            died = f"no process could be started: {e}"
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file), died, noise
        except (OSError, ValueError):
            return {"stage": "start"}, died, noise


def _end(process: subprocess.Popen[bytes]) -> str:
    """End a process and all that it started; what it had printed and nobody has read."""
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError, AttributeError):
        process.kill()
    try:
        rest = process.communicate(timeout=5)[0]
    except (ValueError, subprocess.TimeoutExpired):  # read to its end already; or held open by one that got away
        return ""
    return (rest or b"").decode(errors="replace").strip()


def _loaded(report: dict[str, Any], died: str, noise: str) -> list[CheckResult]:
    checks = []
    loaded = "load_ms" in report
    where = {"start": "starting", "load": "being imported", "make": "being made", "doctor": "checking itself"}
    at = f" while {where.get(report['stage'], 'ending')}"
    error = report.get("error", "") or (f"{died}{at}" if died else "")
    last = noise.splitlines()[-1] if noise else ""
    if loaded:
        checks.append(CheckResult("import", True, f"{report['load_ms']} ms; plugin API {report['api']}"))
        eager = ", ".join(report["eager"])
        checks.append(
            CheckResult("light", not eager, f"imports {eager} at once; do so in its hook" if eager else "no framework")
        )
        if report["changed"]:
            checks.append(CheckResult("clean", False, f"its import changes {', '.join(report['changed'])}"))
    if error:
        detail = f"{error}; it last printed: {last}" if died and last else error
        checks.append(CheckResult("made" if loaded else "import", False, detail))
        return checks
    made = f"{report['make_ms']} ms"
    if "capabilities" in report:
        same = report["capabilities"] == report["declared"]
        made += f"; can {', '.join(report['capabilities'])}"
        if not same:
            made += f"; but declares {', '.join(report['declared']) or 'nothing'}"
        checks.append(CheckResult("made", same, made))
    elif "registered" in report:
        imported = ", ".join(report["imported"])
        made += f"; {report['registered']} names" + (f"; imports {imported} at once" if imported else "")
        checks.append(CheckResult("made", not imported, made))
    else:
        checks.append(CheckResult("made", True, f"{made}; {', '.join(report['hooks'])}"))
    if noise and report["stage"] == "done":
        checks.append(CheckResult("quiet", True, f"printed: {last}"))
    return checks + [CheckResult(c["name"], c["ok"], c["detail"]) for c in report.get("checks", [])]


def _conflicts(found: Found) -> CheckResult:
    rivals = [f.label for f in scan(found.kind) if f.name == found.name and f.qualified != found.qualified]
    if rivals:
        return CheckResult("name", False, f"{', '.join(rivals)} has it too; select this one as '{found.qualified}'")
    return CheckResult("name", True, found.value)


def _metadata(found: Found) -> CheckResult:
    stale = discovery.stale_names(found)
    if stale:
        wrong = "; ".join(f"{k}: {v}" for k, v in stale.items())
        return CheckResult("metadata", False, f"{wrong}. Install it again: pip install -e {found.source}")
    return CheckResult("metadata", True, f"editable, {found.source}" if found.source else "installed")


def _wanted(found: Found) -> list[str]:
    """Requirements of a plugin beyond rlcore and what rlcore itself brings."""
    own = [str(r) for r in found.requirements if canonicalize_name(r.name) != "rlcore"]
    return [*(own if found.dist != "rlcore" else ()), *(found.info.needs if found.info else ())]
