"""Random observations, rewards and ends, whatever is done: for tests of shapes and measurements of speed."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space, spaces
from gymnasium.error import InvalidAction
from gymnasium.vector.utils import batch_space

from rlcore.envs.worlds.sampling import sampler
from rlcore.envs.worlds.single import WorldEnv
from rlcore.envs.worlds.streams import FloatArray, IntArray, Streams
from rlcore.envs.worlds.vector import WorldVectorEnv
from rlcore.envs.worlds.world import BoolArray, State, World
from rlcore.errors import ConfigError
from rlcore.specs import Tree


class RandomWorld(World):
    """Observations are drawn from their space (see :mod:`rlcore.envs.worlds.sampling`), rewards uniformly from
    [0, 1), and each step terminates with the same probability. Actions are checked and change nothing.

    The state is a seed, which the observation is a function of.

    :param observation_space: Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple; Box(-1, 1, (4,)) if None.
    :param action_space: of the same kinds; Discrete(2) if None.
    :param end_probability: of each step, 0 to 1.
    :raises ConfigError: for another space, and for a probability out of range.
    """

    def __init__(
        self,
        *,
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        end_probability: float = 0.1,
    ) -> None:
        if not 0 <= end_probability <= 1:
            raise ConfigError(f"end_probability is {end_probability}, expected 0 to 1")
        self.observation_space = observation_space or spaces.Box(-1, 1, (4,), np.float32)
        self.action_space = action_space or spaces.Discrete(2)
        self.end_probability = end_probability
        self._sample = sampler(self.observation_space)
        sampler(self.action_space)
        self._batched: dict[int, Space[Any]] = {}

    def actions(self, actions: Tree, n: int) -> np.ndarray[Any, Any]:
        if n not in self._batched:
            self._batched[n] = batch_space(self.action_space, n)
        if not self._batched[n].contains(actions):
            raise InvalidAction(f"actions are {actions!r}, expected {n} of {self.action_space}")
        return np.empty((n, 0))

    def start(self, streams: Streams) -> State:
        return streams.bits(1)[:, 0]

    def step(
        self, state: State, t: IntArray, action: np.ndarray[Any, Any], streams: Streams
    ) -> tuple[State, FloatArray, BoolArray]:
        following, chances = streams.bits(1)[:, 0], streams.uniform(2)
        return following, chances[:, 0].copy(), chances[:, 1] < self.end_probability

    def observe(self, state: State, t: IntArray) -> Tree:
        return self._sample(state)


class RandomEnv(WorldEnv):
    """One :class:`RandomWorld`, whose options it takes."""

    world_class = RandomWorld


class RandomVectorEnv(WorldVectorEnv):
    """``num_envs`` of :class:`RandomWorld`, whose options it takes."""

    world_class = RandomWorld
