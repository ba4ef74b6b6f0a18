"""Hit a target: the reward is the density, at the action, of a Gaussian about what was observed.

After RLgraph's GaussianDensityAsRewardEnvironment, a first task for agents with continuous actions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from rlcore.envs.worlds.single import WorldEnv
from rlcore.envs.worlds.streams import FloatArray, IntArray, Streams
from rlcore.envs.worlds.vector import WorldVectorEnv
from rlcore.envs.worlds.world import BoolArray, State, World, positive
from rlcore.errors import ConfigError
from rlcore.specs import Tree


class GaussianDensity(World):
    """The observation is the mean of the Gaussian, drawn anew for each step, uniformly from [-1, 1) in each dimension.
    The best action is the observation itself.

    :param dimensions: of observation (Box in [-1, 1]) and action (Box in [-2, 2]; finite ones beyond are taken too).
    :param scale: standard deviation in each dimension, above 0.
    :param episode_length: steps till an episode terminates.
    :raises ConfigError: for a number out of range.
    """

    def __init__(self, *, dimensions: int = 1, scale: float = 0.1, episode_length: int = 5) -> None:
        if not 0 < scale < np.inf:
            raise ConfigError(f"scale is {scale}, expected a number above 0")
        self.dimensions, self.episode_length = (
            positive("dimensions", dimensions),
            positive("episode_length", episode_length),
        )
        self.scale = scale
        self.peak: float = (2 * math.pi * scale**2) ** (-self.dimensions / 2)
        self.observation_space = spaces.Box(-1, 1, (self.dimensions,), np.float32)
        self.action_space = spaces.Box(-2, 2, (self.dimensions,), np.float32)

    @property
    def optimum(self) -> float:
        """The greatest return of an episode; each of its steps gives as much."""
        return self.peak * self.episode_length

    def actions(self, actions: Tree, n: int) -> np.ndarray[Any, Any]:
        array = np.asarray(actions)
        if array.shape != (n, self.dimensions) or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise InvalidAction(f"actions are {array!r}, expected finite numbers [{n}, {self.dimensions}]")
        return array

    def start(self, streams: Streams) -> State:
        return self._target(streams)

    def step(
        self, state: State, t: IntArray, action: np.ndarray[Any, Any], streams: Streams
    ) -> tuple[State, FloatArray, BoolArray]:
        off: FloatArray = (action.astype(np.float64) - state) / self.scale
        reward = self.peak * np.exp(-0.5 * (off * off).sum(1))
        return self._target(streams), reward, t + 1 == self.episode_length

    def observe(self, state: State, t: IntArray) -> Tree:
        return state.copy()

    def _target(self, streams: Streams) -> State:
        return (2 * streams.uniform(self.dimensions) - 1).astype(np.float32)


class GaussianDensityEnv(WorldEnv):
    """One :class:`GaussianDensity`, whose options it takes."""

    world_class = GaussianDensity


class GaussianDensityVectorEnv(WorldVectorEnv):
    """``num_envs`` of :class:`GaussianDensity`, whose options it takes."""

    world_class = GaussianDensity
