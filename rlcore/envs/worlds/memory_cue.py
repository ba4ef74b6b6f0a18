"""Remember a cue: it is shown at the first step only, and the last action must name it.

The simplest task that no memoryless policy solves; after bsuite's "memory length" (Osband et al. 2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from rlcore.envs.worlds.single import WorldEnv
from rlcore.envs.worlds.streams import FloatArray, IntArray, Streams
from rlcore.envs.worlds.vector import WorldVectorEnv
from rlcore.envs.worlds.world import BoolArray, State, World, discrete, positive
from rlcore.specs import Tree


class MemoryCue(World):
    """An episode takes ``delay + 1`` steps. A cue c is drawn, all alike likely, and shown as ``1 + c`` at step 0; from
    then on the observation is 0. Only the action at step ``delay`` counts: reward 1 if it is c, else -1.

    The optimum is 1. With a delay of 1 or more, no policy of the present observation gets more than chance in the mean,
    ``2 / num_cues - 1``.

    :param num_cues: number of cues and of actions, 2 or more.
    :param delay: steps from the cue to the answer, 0 or more.
    :raises ConfigError: for a number that is too small.
    """

    def __init__(self, *, num_cues: int = 2, delay: int = 4) -> None:
        self.num_cues, self.delay = positive("num_cues", num_cues, 2), positive("delay", delay, 0)
        self.observation_space = spaces.Discrete(self.num_cues + 1)
        self.action_space = spaces.Discrete(self.num_cues)

    def actions(self, actions: Tree, n: int) -> IntArray:
        return discrete(actions, n, self.num_cues)

    def start(self, streams: Streams) -> State:
        return streams.integers(self.num_cues)

    def step(
        self, state: State, t: IntArray, action: np.ndarray[Any, Any], streams: Streams
    ) -> tuple[State, FloatArray, BoolArray]:
        asked = t == self.delay
        return state, np.where(asked, np.where(action == state, 1.0, -1.0), 0.0), asked

    def observe(self, state: State, t: IntArray) -> Tree:
        return (state + 1) * (t == 0)


class MemoryCueEnv(WorldEnv):
    """One :class:`MemoryCue`, whose options it takes."""

    world_class = MemoryCue


class MemoryCueVectorEnv(WorldVectorEnv):
    """``num_envs`` of :class:`MemoryCue`, whose options it takes."""

    world_class = MemoryCue
