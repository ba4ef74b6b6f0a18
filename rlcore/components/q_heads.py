"""Heads that turn features into action values."""

from __future__ import annotations

from rlcore.component import Array, Component, api
from rlcore.components.layers import Dense


class LinearQ(Component):
    """Q = h W + b.   features: float32 [..., n]  ->  float32 [..., num_actions]"""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.output = Dense(num_actions)

    @api
    def __call__(self, features: Array) -> Array:
        return self.output(features)


class DuelingQ(Component):
    """Q = V + A - mean A (Wang et al. 2016, eq. 9).   features: float32 [..., n]  ->  float32 [..., num_actions]

    Deviation: the streams are linear on the shared features, without hidden layers of their own.
    """

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.value = Dense(1)
        self.advantage = Dense(num_actions)

    @api
    def __call__(self, features: Array) -> Array:
        advantage = self.advantage(features)
        return self.value(features) + advantage - self.ops.mean(advantage, -1, True)


class QNetwork(Component):
    """A network and a head.   observation: tree of [B, ...]  ->  float32 [B, num_actions]"""

    def __init__(self, network: Component, num_actions: int, *, dueling: bool = False) -> None:
        super().__init__()
        self.network = network
        self.head = DuelingQ(num_actions) if dueling else LinearQ(num_actions)

    @api
    def __call__(self, observation: Array) -> Array:
        return self.head(self.network(observation))  # type: ignore[operator]
