"""Tests for one's own components and plugins, on every backend.

``ComponentTest`` builds one component alone. The conformance suites say whether a plugin does what its kind must do:
as pytest classes (``class TestMine(GraphBuilderConformance): plugin = "mine"``), or as ``rlcore check-plugin mine``.
"""

from rlcore.testing.checks import Outcome
from rlcore.testing.component_test import ComponentTest
from rlcore.testing.suites import (
    ComponentsConformance,
    ExecutorConformance,
    GraphBuilderConformance,
    HooksConformance,
    run_checks,
)

__all__ = [
    "ComponentTest",
    "ComponentsConformance",
    "ExecutorConformance",
    "GraphBuilderConformance",
    "HooksConformance",
    "Outcome",
    "run_checks",
]
