"""Tests for one's own components, on every backend."""

from rlcore.testing.component_test import ComponentTest

__all__ = ["ComponentTest"]
