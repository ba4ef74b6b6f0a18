"""Entry point of the built-in backend: found by the same road as a stranger's."""

from __future__ import annotations

from typing import Any

from rlcore.plugins import PluginInfo, hookimpl


class NumpyPlugin:
    info = PluginInfo(
        api_version="1.0",
        capabilities=("eager", "gradients", "cpu"),
        summary="NumPy, the reference",
    )

    @hookimpl
    def rlcore_make_graph_builder(self) -> Any:
        from rlcore.backends.numpy.builder import NumpyGraphBuilder

        return NumpyGraphBuilder()
