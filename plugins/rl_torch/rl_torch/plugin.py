"""Entry point: imports no framework until a graph builder is asked for."""

from __future__ import annotations

from typing import Any

from rlcore.plugins import PluginInfo, hookimpl


class TorchPlugin:
    info = PluginInfo(
        api_version="1.0",
        capabilities=("eager", "static", "gradients", "cpu", "cuda"),
        summary="PyTorch, define-by-run or compiled",
    )

    @hookimpl
    def rlcore_make_graph_builder(self) -> Any:
        from rl_torch.builder import TorchGraphBuilder

        return TorchGraphBuilder()
