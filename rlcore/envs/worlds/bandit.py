"""A bandit with Gaussian rewards: the 10-armed testbed of Sutton and Barto (2018, section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rlcore.envs.worlds.single import WorldEnv
from rlcore.envs.worlds.streams import FloatArray, IntArray, Streams
from rlcore.envs.worlds.vector import WorldVectorEnv
from rlcore.envs.worlds.world import BoolArray, State, World, discrete, positive
from rlcore.errors import ConfigError
from rlcore.specs import Tree


class Bandit(World):
    """Arm a gives a reward of mean ``means[a]`` and standard deviation ``reward_std``. The observation is always 0.

    :param arms: number of arms; that of ``means``, if they are given.
    :param means: of the arms; drawn from a standard normal distribution if None.
    :param problem_seed: what they are drawn with. The bandit is the same in all envs and episodes: the seeds of
        ``reset`` are those of the rewards alone.
    :param reward_std: 0 or more.
    :param episode_length: steps till an episode terminates.
    :raises ConfigError: for a number out of range, and for ``means`` that are none or not finite.
    :ivar means: float64 [arms].
    """

    def __init__(
        self,
        *,
        arms: int = 10,
        means: Sequence[float] | None = None,
        problem_seed: int = 0,
        reward_std: float = 1.0,
        episode_length: int = 1,
    ) -> None:
        if means is None:
            means = np.random.default_rng(problem_seed).normal(size=positive("arms", arms)).tolist()
        self.means: FloatArray = np.array(means, np.float64)
        if self.means.ndim != 1 or not len(self.means) or not np.isfinite(self.means).all():
            raise ConfigError(f"means is {means!r}, expected one finite number an arm")
        if not 0 <= reward_std < np.inf:
            raise ConfigError(f"reward_std is {reward_std}, expected a number of 0 or more")
        self.reward_std, self.episode_length = reward_std, positive("episode_length", episode_length)
        self.observation_space, self.action_space = spaces.Discrete(1), spaces.Discrete(len(self.means))

    @property
    def optimum(self) -> float:
        """Mean return of an episode that pulls the best arm."""
        return float(self.means.max()) * self.episode_length

    def actions(self, actions: Tree, n: int) -> IntArray:
        return discrete(actions, n, len(self.means))

    def start(self, streams: Streams) -> State:
        return np.zeros(streams.n, np.int64)

    def step(
        self, state: State, t: IntArray, action: np.ndarray[Any, Any], streams: Streams
    ) -> tuple[State, FloatArray, BoolArray]:
        reward = self.means.take(action) + self.reward_std * streams.normal(1)[:, 0]
        return state, reward, t + 1 == self.episode_length

    def observe(self, state: State, t: IntArray) -> Tree:
        return state.copy()


class BanditEnv(WorldEnv):
    """One :class:`Bandit`, whose options it takes."""

    world_class = Bandit


class BanditVectorEnv(WorldVectorEnv):
    """``num_envs`` of :class:`Bandit`, whose options it takes."""

    world_class = Bandit
