"""Recipe: all that it takes to build an agent's graph, here or in another process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlcore.agents.agent import Agent, AgentConfig
from rlcore.assembly import assemble
from rlcore.backend import Executable
from rlcore.component_graph import ComponentGraph
from rlcore.plugins.manager import make_graph_builder
from rlcore.specs import SpecTree


@dataclass(frozen=True)
class Recipe:
    """Plain data, and names of plugins.

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

    def root(self) -> Agent:
        return self.agent(self.observation, self.action, self.config)

    def graph(self, apis: Sequence[str] | None = None) -> ComponentGraph:
        """The component graph of some root apis; of all if None."""
        root = self.root()
        inputs = root.api_inputs()
        return assemble(root, inputs if apis is None else {a: inputs[a] for a in inputs if a in apis})

    def build(self, apis: Sequence[str] | None = None) -> Executable:
        builder = make_graph_builder(self.backend)
        return builder.build(self.graph(apis), mode=self.mode, device=self.device, seed=self.seed)

    def on(self, backend: Any, mode: str | None = None) -> Recipe:
        """The same agent on another backend."""
        return replace(self, backend=backend, mode=mode, device=None)
