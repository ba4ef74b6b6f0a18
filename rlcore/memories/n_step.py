"""n-step transitions, built while the environments run."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

from rlcore.errors import ConfigError, SpecError
from rlcore.specs import Tree, described


def _at(name: str, path: Any) -> str:
    return "/".join([name, *map(str, path)])


class _Ring:
    """The last n rows [N, ...] of a tree, in slots [n, N, ...] of the shapes and dtypes of the first row."""

    def __init__(self, name: str, example: Tree, n: int, num_envs: int) -> None:
        leaves, self._treedef = optree.tree_flatten(example)
        self._name, self._single = name, isinstance(example, np.ndarray)
        for path, leaf in zip(self._treedef.paths(), leaves, strict=True):
            if not isinstance(leaf, np.ndarray) or leaf.shape[:1] != (num_envs,):
                expected = f"an array [{num_envs}, ...]"
                raise SpecError(f"{_at(name, path)}: got {described(leaf)}, expected {expected}", expected=expected)
        self._slots = [np.zeros((n, *leaf.shape), leaf.dtype) for leaf in leaves]
        self._shapes = [(leaf.shape, leaf.dtype) for leaf in leaves]

    def check(self, tree: Tree, name: str) -> list[Any]:
        """The leaves, which must have the shapes and dtypes of the first tree."""
        leaves: list[Any] = [tree]
        if not (self._single and isinstance(tree, np.ndarray)):
            leaves, treedef = optree.tree_flatten(tree)
            if treedef != self._treedef:
                raise SpecError(f"{name} is nested as {treedef}, before it was {self._treedef}")
        for i, (leaf, (shape, dtype)) in enumerate(zip(leaves, self._shapes, strict=True)):
            if not isinstance(leaf, np.ndarray) or leaf.shape != shape or leaf.dtype != dtype:
                expected = f"{dtype}{list(shape)}"
                where = _at(name, self._treedef.paths()[i])
                raise SpecError(f"{where}: got {described(leaf)}, expected {expected}", expected=expected)
        return leaves

    def write(self, slot: int, tree: Tree) -> None:
        for slots, leaf in zip(self._slots, self.check(tree, self._name), strict=True):
            slots[slot] = leaf

    def roll(self, envs: np.ndarray) -> None:
        for slots in self._slots:
            slots[:, envs] = np.roll(slots[:, envs], 1, axis=0)

    def row(self, slot: int) -> Tree:
        """A copy of a slot: tree of [N, ...]."""
        return self._nested([slots[slot].copy() for slots in self._slots])

    def gather(self, slots: np.ndarray, envs: np.ndarray) -> Tree:
        """Rows by slot [M] and env [M]: tree of [M, ...]."""
        return self._nested([s[slots, envs] for s in self._slots])

    def _nested(self, leaves: list[np.ndarray]) -> Tree:
        return leaves[0] if self._single else optree.tree_unflatten(self._treedef, leaves)


def _take(tree: Tree, rows: np.ndarray) -> Tree:
    return tree[rows] if isinstance(tree, np.ndarray) else optree.tree_map(lambda a: a[rows], tree)


class NStepBuilder:
    """Sums up to n rewards into one transition, for N environments at once.

    The numbers are those of :func:`rlcore.returns.n_step_returns` before the bootstrap: a transition spans n valid
    steps of one episode, fewer where the episode ends before. None joins two episodes.

    :param num_envs: N.
    :param n: rewards summed.
    :param gamma: discount of one step.
    :raises ConfigError: unless n >= 1 and 0 <= gamma <= 1.
    """

    def __init__(self, num_envs: int, n: int, gamma: float) -> None:
        check_horizon(gamma=gamma, n=n)
        self.num_envs, self.n, self.gamma = num_envs, n, gamma
        self._observations: _Ring | None = None
        self._actions: _Ring | None = None
        self._powers = gamma ** np.arange(n + 1, dtype=np.float64)
        # _weights[s][j]: what a reward counts in the sum that began in slot j when it is slot s's turn.
        ages = (np.arange(n)[:, None] - np.arange(n)) % n
        self._weights = self._powers[ages][:, :, None]
        self._returns = np.zeros((n, num_envs))
        self._full = np.full(num_envs, self._powers[n], np.float32)
        self.reset()

    def reset(self) -> None:
        """Drop the steps that are pending."""
        self._slot = 0  # where the next row goes; the pending rows of an env lie just before
        self._count = np.zeros(self.num_envs, np.int64)
        self._steady = self.n == 1  # n - 1 steps are pending in every env

    def add(
        self,
        observation: Tree,
        action: Tree,
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        next_observation: Tree,
        valid: np.ndarray,
    ) -> dict[str, Tree] | None:
        """Take in one step of all envs.

        :param observation: tree of [N, ...], that was acted on; copied while it is pending.
        :param action: tree of [N, ...], likewise.
        :param reward: real [N].
        :param terminated: bool [N].
        :param truncated: bool [N].
        :param next_observation: tree of [N, ...], the true last one where an episode ended.
        :param valid: bool [N]; a row that is not valid is left out, as if the env had not been stepped.
        :return: the M transitions that this step completed, ordered by env and within an env by age, oldest first:
            ``observation``, ``action``, ``return`` float32 [M], ``discount`` float32 [M] (gamma^k, or 0 where
            terminated), ``next_observation``; None if there are none. Arrays may be the very ones given.
        :raises SpecError: if a shape, dtype or nesting is not that of the first call; names the key path.
        """
        self._check_rows(reward=reward, terminated=terminated, truncated=truncated, valid=valid)
        observations, actions, n, slot = self._observations, self._actions, self.n, self._slot
        if observations is None or actions is None:
            self._observations = observations = _Ring("observation", observation, n, self.num_envs)
            self._actions = actions = _Ring("action", action, n, self.num_envs)
        observations.check(next_observation, "next_observation")
        all_valid = np.count_nonzero(valid) == self.num_envs
        if n == 1:
            observations.check(observation, "observation")
            actions.check(action, "action")
            batch = {
                "observation": observation,
                "action": action,
                "return": reward.astype(np.float32),
                "discount": ~terminated * self._full,
                "next_observation": next_observation,
            }
            if all_valid:
                return batch
            return {key: _take(value, valid) for key, value in batch.items()} if np.count_nonzero(valid) else None
        ended = terminated | truncated
        observations.write(slot, observation)
        actions.write(slot, action)
        self._returns[slot] = 0
        if all_valid:
            self._returns += self._weights[slot] * reward
        else:
            self._returns += self._weights[slot] * np.where(valid, reward, 0)
            ended &= valid
            waiting = np.flatnonzero(~valid & (self._count > 0))
            if len(waiting):  # mid-episode: the pending rows have to move on with the slot
                observations.roll(waiting)
                actions.roll(waiting)
                self._returns[:, waiting] = np.roll(self._returns[:, waiting], 1, axis=0)
        self._slot = oldest = (slot + 1) % n
        if self._steady and all_valid and not np.count_nonzero(ended):
            return {
                "observation": observations.row(oldest),
                "action": actions.row(oldest),
                "return": self._returns[oldest].astype(np.float32),
                "discount": self._full.copy(),
                "next_observation": next_observation,
            }
        count = self._count + valid
        done = np.where(ended, count, (count == n) & valid)  # transitions completed, by env
        self._count = np.where(ended, 0, np.minimum(count, n - 1))
        self._steady = np.count_nonzero(self._count == n - 1) == self.num_envs
        total = int(done.sum())
        if not total:
            return None
        envs = np.repeat(np.arange(self.num_envs), done)
        position = np.arange(total) - np.repeat(np.cumsum(done) - done, done)  # 0 for the oldest of its env
        horizon = count[envs] - position
        slots = (slot + 1 - horizon) % n
        return {
            "observation": observations.gather(slots, envs),
            "action": actions.gather(slots, envs),
            "return": self._returns[slots, envs].astype(np.float32),
            "discount": (self._powers[horizon] * ~terminated[envs]).astype(np.float32),
            "next_observation": _take(next_observation, envs),
        }

    def _check_rows(self, **rows: np.ndarray) -> None:
        for name, row in rows.items():
            if row.shape != (self.num_envs,) or (name != "reward" and row.dtype != np.bool_):
                kind = "a number" if name == "reward" else "bool"
                raise SpecError(f"{name}: got {described(row)}, expected {kind} [{self.num_envs}]")


def check_horizon(*, gamma: float, n: int) -> None:
    """Raise ConfigError unless n >= 1 and 0 <= gamma <= 1."""
    if n < 1:
        raise ConfigError(f"n is {n}, expected 1 or more steps")
    if not 0 <= gamma <= 1:
        raise ConfigError(f"gamma is {gamma}, expected 0 to 1")
