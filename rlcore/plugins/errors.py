"""What a plugin can do wrong, and what to do about it."""

from __future__ import annotations

from rlcore.errors import RLCoreError


class RLPluginError(RLCoreError):
    """Base of all plugin errors.

    :ivar kind: ``graph builder`` or ``executor``.
    :ivar name: the name that was asked for.
    """

    def __init__(self, message: str, *, kind: str, name: str) -> None:
        super().__init__(message)
        self.kind, self.name = kind, name


class PluginNotFound(RLPluginError, LookupError):
    """No installed distribution provides the name."""


class PluginConflict(RLPluginError):
    """Two distributions provide the name."""


class PluginLoadError(RLPluginError, ImportError):  # type: ignore[misc]  # both have a name: ours is the plugin's
    """The plugin is installed, but it, or the framework it needs, can't be imported."""


class PluginContractError(RLPluginError):
    """The plugin does not do what its kind must do."""
