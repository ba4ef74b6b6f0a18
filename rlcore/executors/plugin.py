"""Entry point of the built-in executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlcore.plugins import PluginInfo, hookimpl


class LocalPlugin:
    info = PluginInfo(api_version="1.0", capabilities=("tasks", "collectives"), summary="one process, in a fixed order")

    @hookimpl
    def rlcore_make_executor(self, options: Mapping[str, Any]) -> Any:
        from rlcore.errors import ConfigError
        from rlcore.executors.local import LocalExecutor

        if options:
            raise ConfigError(f"executor 'local' has no option '{next(iter(options))}'; it has none")
        return LocalExecutor()
