"""The hooks that plugins implement. Every call is by keyword.

A plugin is a class, named by an entry point, in a module that imports quickly and without its framework;
an instance of it is registered. The framework is imported when its hook is called::

    class TorchPlugin:
        @hookimpl
        def rlcore_make_graph_builder(self):
            from rl_torch.builder import TorchGraphBuilder
            return TorchGraphBuilder()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from rlcore.backend import GraphBuilder
    from rlcore.executor import Executor

PROJECT = "rlcore"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def rlcore_make_graph_builder() -> GraphBuilder | None:
    """Make the graph builder of an entry point in ``rlcore.graph_builders``. Called when a backend is first used."""


@hookspec(firstresult=True)
def rlcore_make_executor(options: Mapping[str, Any]) -> Executor | None:
    """Make an executor of an entry point in ``rlcore.executors``.

    :param options: the user's settings under ``executor``, without its name.
    """
