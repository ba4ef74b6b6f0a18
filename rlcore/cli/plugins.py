"""``rlcore plugins``, ``doctor`` and ``check-plugin``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlcore.errors import ConfigError
from rlcore.plugins.doctor import examine, find_kind, not_installed, table

STYLES = {"ready": "green", "off": "dim", "missing": "yellow", "incompatible": "red", "conflict": "red"}


def plugins_command(as_json: bool) -> None:
    rows, absent = table(), not_installed()
    if as_json:
        print(json.dumps({"plugins": [asdict(r) for r in rows], "not_installed": absent}, indent=2))
        return
    out = _table("KIND", "NAME", "PACKAGE", "API", "STATUS", "NEEDS", "TO DO")
    for r in rows:
        package = f"{r.distribution} {r.version}{' (editable)' if r.editable else ''}"
        status = Text(r.status, style=STYLES[r.status])
        out.add_row(r.kind, Text(r.name, style="bold"), package, r.api, status, Text("\n".join(r.needs)), Text(r.fix))
    console = _console()
    console.print(out)
    for what, command in absent.items():
        console.print(f"Not installed: {what} ({command})", markup=False, soft_wrap=True)


def doctor_command(names: Sequence[str], deep: bool, time_limit: float, as_json: bool) -> int:
    """:return: exit code: 1 if anything is wrong."""
    found = examine(names, deep=deep, time_limit=time_limit)
    if as_json:
        print(json.dumps([d.to_dict() for d in found], indent=2))
    else:
        console = _console()
        for d in found:
            mark = Text("ok", style="green") if d.ok else Text("BROKEN", style="bold red")
            console.print(Text.assemble((f"{d.kind} ", "dim"), (d.name, "bold"), f" ({d.distribution})  ", mark))
            for check in d.checks:
                sign = ("  ✓ ", "green") if check.ok else ("  ✗ ", "bold red")
                lines = [line.strip() for line in check.detail.splitlines()]
                text = ("\n" + " " * 18).join(lines)
                console.print(Text.assemble(sign, f"{check.name:<13} ", text), soft_wrap=True)
        broken = [d.name for d in found if not d.ok]
        ending = f"; broken: {', '.join(broken)}" if broken else ""
        console.print(f"{len(found)} plugin{'s' if len(found) > 1 else ''} examined{ending}", markup=False)
    return 0 if all(d.ok for d in found) else 1


def check_plugin_command(
    name: str, expected: Sequence[str], only: Sequence[str], options: Mapping[str, Any], as_json: bool
) -> int:
    """:return: exit code: 1 if a check fails."""
    from rlcore.testing.suites import run_checks

    found = find_kind(name)
    reasons = {}
    for text in expected:
        check, equals, reason = text.partition("=")
        if not equals or not reason.strip():
            raise ConfigError(f"--expect-failure {text}: write it as CHECK=REASON; a reason is required")
        reasons[check.strip()] = reason.strip()
    console, outcomes = _console(), []
    for outcome in run_checks(found.kind, found.qualified, expected_failures=reasons, only=only, options=options):
        outcomes.append(outcome)
        if not as_json:
            style = "green" if outcome.ok else "bold red"
            line = Text.assemble((f"{outcome.status:<17}", style), f"{outcome.check:<34}{outcome.seconds:>7.2f} s")
            console.print(line)
            if outcome.detail:
                console.print(Text(f"    {outcome.detail}"), soft_wrap=True)
    failed = [o for o in outcomes if not o.ok]
    if not outcomes:
        raise ConfigError(f"no check of {found.kind.words} '{found.name}' has a name with {' or '.join(only)}")
    if as_json:
        print(json.dumps([asdict(o) for o in outcomes], indent=2))
    else:
        for outcome in failed:
            if outcome.trace:
                console.print(Text(f"\n{outcome.check}\n{outcome.trace}"), soft_wrap=True)
        console.print(
            f"{found.kind.words} '{found.name}' ({found.label}): "
            f"{len(outcomes) - len(failed)} of {len(outcomes)} checks passed",
            markup=False,
        )
    return 1 if failed else 0


def _table(*columns: str) -> Table:
    out = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        out.add_column(column, overflow="fold")
    return out


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:  # a table for a pipe is not folded to 80 columns
        console = Console(highlight=False, width=200)
    return console
