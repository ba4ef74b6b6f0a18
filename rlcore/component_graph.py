"""ComponentGraph: what assembling a component tree found out. A backend builds from it; people look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlcore.component import Component, Noise, Variable
from rlcore.layout import Instance
from rlcore.specs import SpecTree, TensorSpec


@dataclass(frozen=True)
class NoiseInput:
    """A random input of a root api: one noise of one call of one component.

    :ivar shape: ints and names of the root api's axes.
    """

    path: str
    api: str
    name: str
    call: int
    noise: Noise
    shape: tuple[int | str, ...]

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.shape, "float32")


@dataclass(frozen=True)
class ApiGraph:
    """A root api: named input spec trees, output spec tree, and its noise in the order in which it is used.

    :ivar reached: paths of the components that it calls, itself among them.
    :ivar writes: whether it assigns to a variable.
    :ivar gradients: whether it takes gradients.
    """

    name: str
    inputs: Mapping[str, SpecTree]
    outputs: SpecTree
    noise: tuple[NoiseInput, ...]
    reached: frozenset[str]
    writes: bool
    gradients: bool = False


@dataclass
class Node:
    """A component: path, class name, other paths to it, its variables, and the specs of each api's first call."""

    path: str
    component: str
    aliases: list[str] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    apis: dict[str, tuple[Mapping[str, SpecTree], SpecTree]] = field(default_factory=dict)


@dataclass(frozen=True)
class Edge:
    """``caller``'s api called ``callee``'s api, ``count`` times over all root apis."""

    caller: str
    caller_api: str
    callee: str
    callee_api: str
    count: int


@dataclass(frozen=True)
class ComponentGraph:
    """An assembled tree. Immutable: builders work on private copies (:meth:`instantiate`)."""

    root: Component
    apis: Mapping[str, ApiGraph]
    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]

    @property
    def variables(self) -> list[Variable]:
        return [v for node in self.nodes.values() for v in node.variables]

    @property
    def num_parameters(self) -> int:
        """Number of trained scalars."""
        return sum(v.size for v in self.variables if v.trainable)

    def instantiate(self) -> Instance:
        return Instance(self.root)

    def to_text(self) -> str:
        """A tree with specs, for the terminal."""
        from rlcore.graph_views import to_text

        return to_text(self)

    def to_mermaid(self) -> str:
        from rlcore.graph_views import to_mermaid

        return to_mermaid(self)

    def to_dot(self) -> str:
        """Graphviz."""
        from rlcore.graph_views import to_dot

        return to_dot(self)

    def to_html(self) -> str:
        """One page with the drawn graph and all specs; needs no network."""
        from rlcore.graph_views import to_html

        return to_html(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: no callables, no tensors."""
        from rlcore.graph_views import to_dict

        return to_dict(self)
