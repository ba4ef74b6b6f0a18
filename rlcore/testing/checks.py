"""Checks of a plugin, collected by kind; :mod:`rlcore.testing.suites` runs them.

A check is a function that takes a :class:`Subject` and raises AssertionError, or any other exception, if the plugin
does not do what its kind must do. Which checks apply follows from what the plugin declares: a check ``of`` a capability
runs if it is declared, a check ``without`` one if it is not, and then demands a clean refusal.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlcore.plugins import discovery
from rlcore.plugins.discovery import COMPONENTS, EXECUTOR, GRAPH_BUILDER, HOOKS, Found, Kind
from rlcore.plugins.session import Session

STATUSES = ("passed", "failed", "expected failure", "unexpected pass")


@dataclass
class Subject:
    """The plugin under test; what the checks of one run share.

    :ivar options: of the executor under test.
    """

    found: Found
    options: Mapping[str, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.found.qualified

    @property
    def session(self) -> Session:
        """Without observers; made once."""
        if "session" not in self.shared:
            self.shared["session"] = Session([])
        session: Session = self.shared["session"]
        return session

    def capabilities(self) -> frozenset[str]:
        """What the plugin declares, read from the class."""
        info = discovery.load(self.found).info  # type: ignore[attr-defined]
        return frozenset(info.capabilities)


@dataclass(frozen=True)
class Check:
    """:ivar name: ``group/what``, unique within a kind."""

    name: str
    run: Callable[[Subject], None]
    of: str | None = None
    without: str | None = None


@dataclass(frozen=True)
class Outcome:
    """:ivar status: one of :data:`STATUSES`. ``detail``: the error, or the reason of an expected failure."""

    check: str
    status: str
    detail: str = ""
    seconds: float = 0.0
    trace: str = ""

    @property
    def ok(self) -> bool:
        return self.status in ("passed", "expected failure")


CHECKS: dict[str, list[Check]] = {kind.name: [] for kind in (GRAPH_BUILDER, EXECUTOR, COMPONENTS, HOOKS)}


def check(
    name: str, *kinds: Kind, of: str | None = None, without: str | None = None
) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    """Add a function to the checks of some kinds.

    :param of: run it only if the plugin declares this capability; ``without``: only if it does not.
    """

    def add(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
        for kind in kinds:
            assert name not in {c.name for c in CHECKS[kind.name]}, name
            CHECKS[kind.name].append(Check(name, function, of, without))
        return function

    return add


def run_check(check: Check, subject: Subject, expected_failures: Mapping[str, str]) -> Outcome:
    """Run one check; its failure is a result, not an exception."""
    reason = expected_failures.get(check.name)
    start, error = time.perf_counter(), None
    try:
        check.run(subject)
    except Exception as e:
        error = e
    seconds = time.perf_counter() - start
    if error is None and reason is None:
        return Outcome(check.name, "passed", "", seconds)
    if error is None:
        return Outcome(check.name, "unexpected pass", f"it was expected to fail ({reason}); take it off", seconds)
    text = f"{type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))
    if reason is not None:
        return Outcome(check.name, "expected failure", f"{reason}: {text}", seconds, trace)
    return Outcome(check.name, "failed", text, seconds, trace)
