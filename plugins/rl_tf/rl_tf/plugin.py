"""Entry point: imports no framework until a graph builder is asked for."""

from __future__ import annotations

from typing import Any

from rlcore.plugins.hookspecs import hookimpl


class TfPlugin:
    @hookimpl
    def rlcore_make_graph_builder(self) -> Any:
        from rl_tf.builder import TfGraphBuilder

        return TfGraphBuilder()
