"""The conformance suites: every check of a kind, run one by one from pytest or from ``rlcore check-plugin``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from rlcore.plugins import discovery
from rlcore.plugins.discovery import COMPONENTS, EXECUTOR, GRAPH_BUILDER, HOOKS, Kind
from rlcore.testing import (  # noqa: F401  # each adds its checks
    check_differential,
    check_executors,
    check_graph_builders,
    check_packages,
    check_packs,
)
from rlcore.testing.checks import CHECKS, Check, Outcome, Subject, run_check


def checks_for(kind: Kind, capabilities: frozenset[str]) -> list[Check]:
    """Those that apply to a plugin of a kind with these capabilities."""
    return [
        c
        for c in CHECKS[kind.name]
        if (c.of is None or c.of in capabilities) and (c.without is None or c.without not in capabilities)
    ]


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
