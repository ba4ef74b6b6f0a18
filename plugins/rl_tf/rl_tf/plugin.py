"""Entry point: imports no framework until a graph builder is asked for."""

from __future__ import annotations

from typing import Any

from rlcore.plugins import PluginInfo, hookimpl


class TfPlugin:
    info = PluginInfo(
        api_version="1.0",
        needs=("tensorflow>=2.18 | tensorflow-cpu>=2.18 | tf-nightly",),
        capabilities=("static", "eager", "gradients", "cpu", "gpu"),
        install="rl-tf[cpu]",
        summary="TensorFlow, as graphs or define-by-run",
    )

    @hookimpl
    def rlcore_make_graph_builder(self) -> Any:
        from rl_tf.builder import TfGraphBuilder

        return TfGraphBuilder()
