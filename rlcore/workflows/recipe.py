"""Recipe: all that it takes to build an agent's graph, here or in another process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlcore.agents.agent import Agent, AgentConfig
from rlcore.assembly import assemble
from rlcore.backend import Executable
from rlcore.component_graph import ComponentGraph
from rlcore.plugins.events import BuildStats
from rlcore.plugins.session import Session
from rlcore.specs import SpecTree


@dataclass(frozen=True)
class Recipe:
    """Plain data, names of plugins, and the session that knows them.

    :ivar observation: specs of one observation; ``action`` likewise.
    :ivar backend: name of a graph backend, or a GraphBuilder.
    :ivar seed: of the initial weights.
    """

    agent: type[Agent]
    observation: SpecTree
    action: SpecTree
    config: AgentConfig
    backend: Any = "numpy"
    mode: str | None = None
    device: str | None = None
    seed: int = 0
    session: Session = field(default_factory=Session)

    def root(self) -> Agent:
        return self.agent(self.observation, self.action, self.config)

    def graph(self, apis: Sequence[str] | None = None) -> ComponentGraph:
        """The component graph of some root apis; of all if None."""
        root = self.root()
        inputs = root.api_inputs()
        return assemble(root, inputs if apis is None else {a: inputs[a] for a in inputs if a in apis})

    def build(self, apis: Sequence[str] | None = None) -> Executable:
        """Assemble and build; the session's observers are told."""
        builder, hooks = self.session.graph_builder(self.backend), self.session.hooks
        graph, start = None, time.perf_counter()
        try:
            graph = self.graph(apis)
            assembled = time.perf_counter()
            hooks.before_build(graph, builder.name, self.mode)
            built_from = time.perf_counter()
            executable = builder.build(graph, mode=self.mode, device=self.device, seed=self.seed)
        except Exception as e:
            hooks.on_build_error(graph, e)
            raise
        stats = BuildStats(
            components=len(graph.nodes),
            variables=len(graph.variables),
            parameters=graph.num_parameters,
            calls=sum(edge.count for edge in graph.edges),
            assembly_seconds=assembled - start,
            build_seconds=time.perf_counter() - built_from,
        )
        hooks.after_build(graph, executable, stats)
        return executable

    def on(self, backend: Any, mode: str | None = None) -> Recipe:
        """The same agent on another backend."""
        return replace(self, backend=backend, mode=mode, device=None)
