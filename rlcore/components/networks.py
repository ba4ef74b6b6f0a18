"""Networks: observations in, feature vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optree

from rlcore.component import Array, Component, api
from rlcore.components.layers import Conv2D, Dense, Flatten, LayerNorm, OneHot, ScaleImage, activate, check_activation
from rlcore.errors import ConfigError, SpecError
from rlcore.specs import SpecTree, TensorSpec, describe, is_spec, spec_leaves


class Sequential(Component):
    """Layers one after the other.   x: any  ->  what the last layer gives"""

    def __init__(self, *layers: Component) -> None:
        super().__init__()
        self.layers = list(layers)

    @api
    def __call__(self, x: Array) -> Array:
        for layer in self.layers:
            x = layer(x)  # type: ignore[operator]
        return x


class MLP(Sequential):
    """Dense layers with one activation.   x: float32 [..., in]  ->  float32 [..., hidden[-1]]

    :param hidden: units of each layer.
    :param layer_norm: a LayerNorm before each activation.
    """

    def __init__(self, hidden: Sequence[int], *, activation: str = "relu", layer_norm: bool = False) -> None:
        check_activation(activation)
        layers: list[Component] = []
        for units in hidden:
            if layer_norm:
                layers += [Dense(units), LayerNorm(), _Activation(activation)]
            else:
                layers.append(Dense(units, activation=activation))
        super().__init__(*layers)


class _Activation(Component):
    """x: float32 [...]  ->  float32 [...]"""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @api
    def __call__(self, x: Array) -> Array:
        return activate(self.ops, x, self.name)


class NatureCNN(Sequential):
    """Mnih et al. 2015.   x: uint8 [B, H, W, C]  ->  float32 [B, units]"""

    def __init__(self, *, units: int = 512) -> None:
        super().__init__(
            ScaleImage(),
            Conv2D(32, 8, stride=4, activation="relu"),
            Conv2D(64, 4, stride=2, activation="relu"),
            Conv2D(64, 3, stride=1, activation="relu"),
            Flatten(),
            Dense(units, activation="relu"),
        )


class FlattenObservation(Component):
    """Any tree of observations to one vector.   tree of [B, ...]  ->  float32 [B, n]

    Floats are flattened, discrete values become one-hot, the other integers and bools float. Leaves are
    concatenated in :mod:`optree`'s order (dict keys sorted).

    :param spec: the observation's tree of specs without the batch axis: only it knows the number of values.
    """

    def __init__(self, spec: SpecTree) -> None:
        super().__init__()
        leaves = spec_leaves(spec)
        self.spec_text = describe(spec)
        self.treespec: Any = optree.tree_structure(spec, is_leaf=is_spec)
        self.parts = [_part(leaf) for leaf in leaves]

    def build(self, observation: SpecTree) -> None:  # type: ignore[override]
        if optree.tree_structure(observation, is_leaf=is_spec) != self.treespec:
            raise SpecError("an observation of another structure", expected=self.spec_text)

    @api
    def __call__(self, observation: Array) -> Array:
        leaves = optree.tree_leaves(observation)
        parts = [part(leaf) for part, leaf in zip(self.parts, leaves, strict=True)]  # type: ignore[operator]
        return parts[0] if len(parts) == 1 else self.ops.concat(parts, -1)

    def __deepcopy__(self, memo: Any) -> FlattenObservation:  # a PyTreeSpec is immutable and can't be copied
        import copy

        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        for name, value in vars(self).items():
            vars(twin)[name] = value if name == "treespec" else copy.deepcopy(value, memo)
        return twin


def _part(spec: TensorSpec) -> Component:
    if spec.kind == "discrete":
        return OneHot(spec.num_values, low=int(spec.low))
    return ToFloat()


class ToFloat(Component):
    """Flat float32 features.   x: any dtype [B, ...]  ->  float32 [B, n]"""

    def __init__(self) -> None:
        super().__init__()
        self.flatten = Flatten()

    @api
    def __call__(self, x: Array) -> Array:
        return self.flatten(self.ops.astype(x, "float32"))


def network_for(observation: SpecTree, spec: Any, *, hidden: Sequence[int], activation: str) -> Component:
    """The network that a spec stands for, fit for the observation; the usual one if there is no spec.

    :param spec: a ComponentSpec of kind ``network``, or None. A class that takes ``observation`` gets observations
        as they are, and so does every class if they are images; else they are flattened in front of it.
    """
    if spec is None:
        return default_network(observation, hidden=hidden, activation=activation)
    network: Component = spec.build(observation=observation, hidden=hidden, activation=activation)
    if spec.takes("observation") or (is_spec(observation) and observation.rank == 3):
        return network
    return Sequential(FlattenObservation(observation), network)


def default_network(observation: SpecTree, *, hidden: Sequence[int], activation: str) -> Sequential:
    """The usual network of an observation: NatureCNN for uint8 images, else an MLP on the flattened observation."""
    if is_spec(observation) and observation.rank == 3 and observation.dtype == "uint8":
        return NatureCNN()
    if not spec_leaves(observation):
        raise ConfigError("the observation space is empty")
    return Sequential(FlattenObservation(observation), MLP(hidden, activation=activation))
