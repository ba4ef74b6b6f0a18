"""One copy of a world as a ``gymnasium.Env``."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import optree
from gymnasium.error import ResetNeeded

from rlcore.envs.worlds.world import Copies, World
from rlcore.specs import Tree


class WorldEnv(gym.Env[Any, Any]):
    """One copy of :attr:`world_class`. Its steps are those of one row of the vector env.

    :param max_episode_steps: an episode is truncated with this step; None for never. ``gymnasium.make`` leaves it
        at None and truncates by a wrapper, after as many steps as the id was registered with.
    :param options: of the world.
    :raises ConfigError: for an option that is out of range.
    """

    world_class: ClassVar[type[World]]
    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, *, max_episode_steps: int | None = None, **options: Any) -> None:
        self.world = self.world_class(**options)
        self.observation_space, self.action_space = self.world.observation_space, self.world.action_space
        self._copies = Copies(self.world, 1, max_episode_steps=max_episode_steps)
        self._seeded = self._running = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Tree, dict[str, Any]]:
        """Start an episode.

        :param seed: of all that is random from here on; None goes on with the random numbers, except the first time,
            when the seed comes from the operating system. ``options`` are ignored.
        :return: observation, and an empty info.
        """
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self._copies.streams.seed([self.np_random_seed])
            self._seeded = True
        self._copies.start()
        self._running = True
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Tree, float, bool, bool, dict[str, Any]]:
        """Take one step.

        :return: observation, reward, terminated, truncated, and an empty info.
        :raises ResetNeeded: (of Gymnasium) before the first reset, and after the end of an episode.
        :raises InvalidAction: (of Gymnasium) for an action that is not in the action space.
        """
        if not self._running:
            raise ResetNeeded(f"{self} has no episode under way: call reset() first")
        actions = self.world.actions(optree.tree_map(_one, action), 1)
        reward, terminated, truncated = self._copies.step(actions)
        self._running = not (terminated[0] or truncated[0])
        return self._observe(), float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    def _observe(self) -> Tree:
        return row(self._copies.observe(), 0)


def _one(leaf: Any) -> np.ndarray[Any, Any]:
    return np.asarray(leaf)[None]


def row(tree: Tree, i: int) -> Tree:
    """One row of a tree of [n, ...]: tree of [...]."""
    if isinstance(tree, np.ndarray):
        return tree[i]
    return optree.tree_map(lambda leaf: leaf[i], tree)
