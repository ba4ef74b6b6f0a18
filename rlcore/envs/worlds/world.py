"""What a world is: its rules, and N copies of it that follow them. Single and vector envs are both made of these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.error import InvalidAction

from rlcore.envs.worlds.streams import FloatArray, IntArray, Streams
from rlcore.errors import ConfigError
from rlcore.specs import Tree

State = np.ndarray[Any, Any]
"""What a world keeps of ``n`` copies, one row each: an array [n, ...] of a dtype of the world's own."""
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


class World(ABC):
    """The rules of a world, for any number of copies at once. Keeps no state of a copy.

    :ivar observation_space: of one copy.
    :ivar action_space: of one copy.
    """

    observation_space: Space[Any]
    action_space: Space[Any]

    @abstractmethod
    def actions(self, actions: Tree, n: int) -> np.ndarray[Any, Any]:
        """The actions of ``n`` copies, checked, as one array [n, ...].

        :param actions: tree of [n, ...], as the action space is nested.
        :raises InvalidAction: (of Gymnasium) if one is not in the action space.
        """

    @abstractmethod
    def start(self, streams: Streams) -> State:
        """First states, [n, ...], drawn from n streams. A new array."""

    @abstractmethod
    def step(
        self, state: State, t: IntArray, action: np.ndarray[Any, Any], streams: Streams
    ) -> tuple[State, FloatArray, BoolArray]:
        """One step of n copies.

        :param state: [n, ...], not to be written to.
        :param t: int64 [n], steps taken in the episode before this one.
        :param action: [n, ...], as :meth:`actions` gives it.
        :return: following state (a new array), reward (float64 [n]), terminated (bool [n], new).
        """

    @abstractmethod
    def observe(self, state: State, t: IntArray) -> Tree:
        """What n copies show: tree of [n, ...] in the batched observation space. New arrays."""


class Copies:
    """``n`` copies of a world in the midst of their episodes.

    :param max_episode_steps: an episode is truncated with this step; None for never.
    :ivar t: int64 [n], steps taken in each episode.
    """

    def __init__(self, world: World, n: int, *, max_episode_steps: int | None = None) -> None:
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ConfigError(f"max_episode_steps is {max_episode_steps}, expected 1 or more, or None for no limit")
        self.world, self.n, self.max_episode_steps = world, n, max_episode_steps
        self.streams, self.t = Streams(np.zeros(n, np.uint64)), np.zeros(n, np.int64)
        self.state: State = np.empty(0)
        self._never = np.zeros(n, np.bool_)

    def start(self, rows: IntArray | None = None) -> None:
        """Start an episode in each copy, or in those of ``rows`` (int64 [k])."""
        if rows is None:
            self.state, self.t = self.world.start(self.streams), np.zeros(self.n, np.int64)
            return
        part = self.streams.take(rows)
        self.state[rows], self.t[rows] = self.world.start(part), 0
        self.streams.put(rows, part)

    def step(
        self, action: np.ndarray[Any, Any], rows: IntArray | None = None
    ) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Take one step in each copy, or in those of ``rows`` (int64 [k]).

        :param action: of all n, as :meth:`World.actions` gives it.
        :return: reward (float64 [n]), terminated, truncated (bool [n]); 0 and False in the rows left out. New arrays.
        """
        if rows is None:
            self.state, reward, terminated = self.world.step(self.state, self.t, action, self.streams)
            self.t += 1
        else:
            part = self.streams.take(rows)
            reward, terminated = np.zeros(self.n), self._never.copy()
            following = self.world.step(self.state[rows], self.t[rows], action[rows], part)
            self.state[rows], reward[rows], terminated[rows] = following
            self.streams.put(rows, part)
            self.t[rows] += 1
        if self.max_episode_steps is None:
            return reward, terminated, self._never.copy()
        truncated = self.t >= self.max_episode_steps
        if rows is not None:
            acted = self._never.copy()
            acted[rows] = True
            truncated &= acted
        return reward, terminated, truncated

    def observe(self, rows: IntArray | None = None) -> Tree:
        """tree of [n, ...], or of [k, ...] for ``rows``"""
        if rows is None:
            return self.world.observe(self.state, self.t)
        return self.world.observe(self.state[rows], self.t[rows])


def discrete(actions: Tree, n: int, count: int) -> IntArray:
    """Actions of a ``Discrete(count)``, checked.   integers [n]  ->  int64 [n]"""
    array = np.asarray(actions)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise InvalidAction(f"actions are {array.dtype}{list(array.shape)}, expected integers [{n}]")
    array = array.astype(np.int64, copy=False)
    if n and array.view(np.uint64).max() >= count:  # negative ones are huge then
        raise InvalidAction(f"actions are {array.tolist()}, expected 0 to {count - 1}")
    return array


def positive(name: str, value: Any, least: int = 1) -> int:
    """An option that counts something.

    :raises ConfigError: if it is no integer of ``least`` or more.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ConfigError(f"{name} is {value!r}, expected an integer of {least} or more")
    return int(value)
