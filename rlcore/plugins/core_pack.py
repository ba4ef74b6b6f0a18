"""Entry point of rlcore's own components: found by the same road as a stranger's."""

from __future__ import annotations

from rlcore.plugins import PluginInfo, hookimpl
from rlcore.registry import Registry, register_builtins


class CorePack:
    info = PluginInfo(api_version="1.0", summary="what comes with rlcore")

    @hookimpl
    def rlcore_register_components(self, registry: Registry) -> None:
        register_builtins(registry)
