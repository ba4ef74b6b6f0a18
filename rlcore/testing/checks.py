"""Checks of a plugin: collected by kind, run one by one from pytest or from ``rlcore check-plugin``.

A check is a function that takes a :class:`Subject` and raises AssertionError, or any other exception, if the plugin
does not do what its kind must do. Which checks apply follows from what the plugin declares: a check ``of`` a capability
runs if it is declared, a check ``without`` one if it is not, and then demands a clean refusal.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

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


def checks_for(kind: Kind, capabilities: frozenset[str]) -> list[Check]:
    """Those that apply to a plugin of a kind with these capabilities."""
    from rlcore.testing import suites  # noqa: F401  # adds them

    return [
        c
        for c in CHECKS[kind.name]
        if (c.of is None or c.of in capabilities) and (c.without is None or c.without not in capabilities)
    ]


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


def run_checks(
    kind: Kind,
    name: str,
    *,
    expected_failures: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
) -> Iterator[Outcome]:
    """Run the conformance suite of a plugin, check by check.

    :param expected_failures: name of a check -> why it fails. Strict: one that passes, or does not apply, is a failure.
    :param options: of an executor.
    :param only: parts of names; those checks alone.
    :raises RLPluginError: if the plugin can't be found or loaded.
    """
    expected = dict(expected_failures or {})
    subject = Subject(discovery.pick(kind, name), dict(options or {}))
    checks = checks_for(kind, subject.capabilities())
    for unknown in sorted(set(expected) - {c.name for c in checks}):
        yield Outcome(unknown, "unexpected pass", "no such check applies to this plugin; take it off")
    for one in checks:
        if not only or any(part in one.name for part in only):
            yield run_check(one, subject, expected)


class Conformance:
    """Base of the pytest classes; sub-classes name a plugin::

    class TestMine(GraphBuilderConformance):
        plugin = "mine"
        expected_failures = {"ops/conv2d": "https://example.org/issues/12"}
    """

    kind: Kind
    plugin: str
    options: Mapping[str, Any] = {}
    expected_failures: Mapping[str, str] = {}
    _subjects: ClassVar[dict[tuple[str, str], Subject]] = {}

    def pytest_generate_tests(self, metafunc: Any) -> None:
        if "check" in metafunc.fixturenames:
            subject = self._subject()
            checks = checks_for(self.kind, subject.capabilities())
            unknown = sorted(set(self.expected_failures) - {c.name for c in checks})
            assert not unknown, f"expected_failures names checks that do not apply: {', '.join(unknown)}"
            metafunc.parametrize("check", checks, ids=[c.name for c in checks])

    def test_conformance(self, check: Check) -> None:
        import pytest

        outcome = run_check(check, self._subject(), self.expected_failures)
        if outcome.status == "expected failure":
            pytest.xfail(outcome.detail)
        assert outcome.ok, f"{outcome.check}: {outcome.detail}\n{outcome.trace}"

    def _subject(self) -> Subject:
        key = self.kind.name, self.plugin
        if key not in self._subjects:
            self._subjects[key] = Subject(discovery.pick(self.kind, self.plugin), self.options)
        return self._subjects[key]


class GraphBuilderConformance(Conformance):
    kind = GRAPH_BUILDER


class ExecutorConformance(Conformance):
    kind = EXECUTOR


class ComponentsConformance(Conformance):
    kind = COMPONENTS


class HooksConformance(Conformance):
    kind = HOOKS
