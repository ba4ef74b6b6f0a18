"""Exploration: action values in, actions out."""

from __future__ import annotations

from typing import Any

from rlcore.component import Array, Component, Uniform, api
from rlcore.components.schedules import Schedule, as_schedule


class EpsilonGreedy(Component):
    """The best action, or with probability epsilon a uniformly random one (Watkins 1989).

    q_values: float32 [B, A], progress: float32 []  ->  int64 [B]

    :param epsilon: a schedule over the run's progress (0 to 1).
    """

    def __init__(self, epsilon: Any) -> None:
        super().__init__()
        self.epsilon: Schedule = as_schedule(epsilon)

    @api(noise={"explore": Uniform("B"), "action": Uniform("B")})
    def __call__(self, q_values: Array, progress: Array, *, explore: Array, action: Array) -> Array:
        best = self.ops.argmax(q_values, -1)
        number = q_values.shape[-1]
        random = self.ops.astype(self.ops.floor(action * float(number)), "int64")
        return self.ops.where(explore < self.epsilon(progress), random, best)
