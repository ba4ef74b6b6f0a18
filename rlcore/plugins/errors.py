"""What a plugin can do wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from rlcore.errors import RLCoreError


class RLPluginError(RLCoreError):
    """Base of all plugin errors.

    :ivar kind: ``graph builder``, ``executor``, ``component pack`` or ``hook plugin``.
    :ivar name: of the plugin, as it was asked for.
    :ivar dist: distribution and version that provide it, where one is known (``rl-torch 0.1.0``).
    :ivar candidates: the plugins that could have been meant, each as ``name (distribution version)``.
    """

    def __init__(
        self, message: str, *, kind: str, name: str, dist: str | None = None, candidates: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.kind, self.name, self.dist, self.candidates = kind, name, dist, tuple(candidates)


class PluginNotFound(RLPluginError, LookupError):
    """No installed distribution provides the name, or it is switched off."""


class RLCoreNotInstalled(PluginNotFound):
    """rlcore runs from a folder without package metadata, so no plugin can be found, not even its own."""


class PluginConflict(RLPluginError):
    """Two distributions provide the name, or two packs register one component's name."""


class PluginIncompatible(RLPluginError):
    """The plugin was made for another version of rlcore or of its plugin API."""


class PluginLoadError(RLPluginError, ImportError):  # type: ignore[misc]  # both have a name: ours is the plugin's
    """The plugin is installed, but it, or the framework it needs, can't be imported."""


class PluginContractError(RLPluginError):
    """The plugin does not do what its kind must do."""


class PluginSetMismatch(RLPluginError):
    """A worker process has other plugins, or other versions of them, than the driver."""


class HookError(RLPluginError):
    """A hook of a plugin raised; its exception is the cause of this one.

    :ivar hook: name of the hook.
    """

    hook = ""


class PluginWarning(UserWarning):
    """A plugin that nobody asked for by name is broken and was left out, or an observer's exception was passed over."""
