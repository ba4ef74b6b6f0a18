"""Finding and calling plugins. What an author needs: :class:`PluginInfo`, :data:`hookimpl`, the hook specs."""

from rlcore.plugins.hookspecs import hookimpl
from rlcore.plugins.info import PLUGIN_API_VERSION, PluginInfo

__all__ = ["PLUGIN_API_VERSION", "PluginInfo", "hookimpl"]
