"""BuiltAgent: an agent to call from one's own loop, or to act with after training."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

from rlcore.backend import Weights
from rlcore.errors import ConfigError
from rlcore.specs import spec_leaves
from rlcore.workflows.recipe import Recipe

Tree = Any


class BuiltAgent:
    """All apis of an agent on one backend, NumPy in and out.

    :ivar executable: the build itself, for its lower-level functions.
    """

    def __init__(self, recipe: Recipe, apis: tuple[str, ...] | None = None) -> None:
        self.recipe = recipe
        self.executable = recipe.build(apis)
        self.graph = self.executable.graph
        self.config = recipe.config
        self._ranks = [s.rank for s in spec_leaves(recipe.observation)]
        self._plain = not isinstance(recipe.observation, (dict, tuple, list))

    def act(self, observation: Tree, *, explore: bool = False, progress: float = 1.0) -> Tree:
        """Actions for a batch of observations, or the action for a single one.

        :param observation: ``[B, ...]`` or one observation of the space.
        :param explore: act as in training; ``progress`` (0 to 1) places exploration schedules.
        """
        leaf = observation if self._plain else optree.tree_leaves(observation)[0]
        single = np.ndim(leaf) == self._ranks[0]
        if single:
            observation = optree.tree_map(lambda x: np.asarray(x)[None], observation)
        if explore:
            actions = self.executable("act", observation, np.asarray(progress, np.float32))
        else:
            actions = self.executable("act_greedy", observation)
        return optree.tree_map(lambda a: a[0], actions) if single else actions

    def update(self, batch: Tree, *, progress: float = 0.0) -> dict[str, float | np.ndarray]:
        """One gradient step.

        :param batch: as the agent's ``update`` describes it.
        :param progress: share of the run that is done, for schedules.
        :return: metrics; scalars as floats.
        """
        if "update" not in self.graph.apis:
            raise ConfigError("this agent was built for acting only; it has no 'update'")
        metrics = self.executable("update", batch, np.asarray(progress, np.float32))
        return {k: float(v) if np.ndim(v) == 0 else v for k, v in metrics.items()}

    def sync(self) -> None:
        """Copy the online weights to the target network, where the agent has one that is copied by hand."""
        self.executable("sync")

    def get_weights(self) -> Weights:
        return self.executable.get_weights()

    def set_weights(self, weights: Weights) -> None:
        self.executable.set_weights(weights)
