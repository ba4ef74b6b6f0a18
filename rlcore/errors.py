"""The errors a user can meet. Each says what is wrong, where, and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RLCoreError(Exception):
    """Base of every error that rlcore raises on purpose."""


class ConfigError(RLCoreError, ValueError):
    """A setting is unknown, of the wrong type, out of range or contradicts another."""


class UnsupportedCapability(ConfigError):
    """A backend or an executor was asked for what it does not declare among its capabilities."""


class SpecError(RLCoreError, TypeError):
    """A tensor or a space is not what was declared.

    :param expected: what would have been right, in words.
    """

    def __init__(self, message: str, *, expected: str | None = None) -> None:
        super().__init__(message)
        self.expected = expected


class BuildError(RLCoreError):
    """A component could not be built.

    :param path: attribute path of the component from the root (``q_network.layers.0``).
    :param api: the api that was running.
    :param given: the specs that came in, in words.
    :param expected: what would have been right, in words.
    """

    def __init__(
        self,
        reason: str,
        *,
        path: str,
        component: str,
        api: str | None = None,
        given: str | None = None,
        expected: str | None = None,
    ) -> None:
        self.reason, self.path, self.component = reason, path, component
        self.api, self.given, self.expected = api, given, expected
        where = f"component '{path}' ({component})" if path else f"root component ({component})"
        if api:
            where += f", api '{api}'"
        lines = [f"{where}: {reason}"]
        if given is not None:
            lines.append(f"  given:    {given}")
        if expected is not None:
            lines.append(f"  expected: {expected}")
        super().__init__("\n".join(lines))


class NotBuiltError(BuildError, AttributeError):
    """An api ran on a component that no backend has built yet."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` for the known name nearest to ``name``, or an empty string."""
    close = difflib.get_close_matches(name.lower(), {k.lower(): None for k in known}, n=1, cutoff=0.5)
    original = {k.lower(): k for k in known}
    return f" Did you mean '{original[close[0]]}'?" if close else ""
