"""Gymnasium vector environments of every autoreset mode behind one interface.

What the modes do when an episode ends at step t, and what :class:`VectorAdapter` makes of it:

=========== ===================================== =========================================== ================
mode        the env returns at t                  at t + 1                                    invalid rows
=========== ===================================== =========================================== ================
NEXT_STEP   last observation of the episode       reset observation; the action was ignored   one an episode
SAME_STEP   reset observation; the last one is    first step of the next episode              none
            in ``infos["final_obs"]``
DISABLED    last observation; the adapter then    first step of the next episode              none
            resets the ended envs itself
=========== ===================================== =========================================== ================

The valid rows are the same in all three.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import optree
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from rlcore.errors import ConfigError, RLCoreError, SpecError, nearest
from rlcore.specs import SpecTree, Tree, from_space

AnyEnv = gym.Env[Any, Any]
AnyVectorEnv = VectorEnv[Any, Any, Any]


EnvSource = str | Callable[[], AnyEnv | AnyVectorEnv] | AnyEnv | AnyVectorEnv


def make_vector(env: EnvSource, num_envs: int = 1, *, exact: bool = True) -> AnyVectorEnv:
    """A vector environment of ``num_envs`` copies, stepped one after the other in this process.

    :param env: a Gymnasium id (``"CartPole-v1"``, ``"module:Id-v0"``), a function that makes one env or a
        vector env, one env (for ``num_envs`` 1), or a vector env. A vector env is passed through as it is.
    :param exact: whether to refuse a vector env of another number; 1 stands for any.
    :raises ConfigError: for an id that is unknown or whose package is missing, for a ``num_envs`` that does not
        fit, and for a function that gives the same env twice.
    """
    if num_envs < 1:
        raise ConfigError(f"num_envs is {num_envs}, expected 1 or more")
    if isinstance(env, VectorEnv):
        if exact and num_envs not in (1, env.num_envs):
            raise ConfigError(f"num_envs is {num_envs}, but the vector env given has {env.num_envs}")
        return env
    if isinstance(env, str):
        return _from_id(env, num_envs)
    if isinstance(env, gym.Env):
        if num_envs != 1:
            raise ConfigError(f"num_envs is {num_envs}, but one env was given; give a function that makes one instead")
        one = env
        return SyncVectorEnv([lambda: one])
    if not callable(env):
        raise ConfigError(f"env is a {type(env).__name__}, expected a Gymnasium id, a function, an env or a vector env")
    first = env()
    if isinstance(first, VectorEnv):
        return make_vector(first, num_envs, exact=exact)
    others: list[Any] = [env] * (num_envs - 1)
    vector: SyncVectorEnv[Any, Any] = SyncVectorEnv([lambda: first, *others])
    if len({id(e.unwrapped) for e in vector.envs}) != num_envs:
        raise ConfigError("the function given as env returned the same env twice; it must make a new one each time")
    return vector


def _from_id(env_id: str, num_envs: int) -> AnyVectorEnv:
    try:
        return gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="sync")
    except (gym.error.Error, ImportError) as e:
        reason, hint = " ".join(str(e).split()), nearest(env_id.rpartition(":")[2], gym.registry)
        if isinstance(e, gym.error.NameNotFound):
            raise ConfigError(f"Gymnasium knows no environment '{env_id}'.{hint}") from e
        # Of a package that is not installed, no registered id is near.
        missing = isinstance(e, gym.error.NamespaceNotFound) and "Did you mean" not in reason
        if missing or isinstance(e, (gym.error.DependencyNotInstalled, gym.error.DeprecatedEnv, ImportError)):
            hint = ""
        raise ConfigError(f"environment '{env_id}' can't be made: {reason}{hint}") from e


class KeepFinalObservation(gym.Wrapper[Any, Any, Any, Any]):
    """Copies the last observation of an episode, which under SAME_STEP an env that reuses its buffer overwrites.

    :class:`VectorAdapter` puts it into a SyncVectorEnv by itself. The envs of an AsyncVectorEnv live in other
    processes: wrap them where they are made.
    """

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            observation = copy.deepcopy(observation)
        return observation, reward, terminated, truncated, info


@dataclass(slots=True)
class Steps:
    """One step of N environments. The arrays are not reused, and not to be written to.

    ``next_observation`` is the true last one where an episode ended. ``terminated`` (ended for good) and
    ``truncated`` (cut off) may both be set. ``valid`` is False where the env ignored the action and was reset
    instead (reward 0, neither terminated nor truncated): no transition.
    """

    next_observation: Tree  # tree of [N, ...]
    reward: np.ndarray  # float32 [N]
    terminated: np.ndarray  # bool [N]
    truncated: np.ndarray  # bool [N]
    valid: np.ndarray  # bool [N]


class VectorAdapter:
    """Steps a Gymnasium vector env of any autoreset mode.

    :param env: the vector env. ``close`` closes it.
    :param autoreset_mode: mode of an env that does not name its own in ``metadata["autoreset_mode"]``. None is
        assumed: a wrong guess would silently join episodes.
    :raises ConfigError: if the mode is unknown, or contradicts the env's own.
    :raises SpecError: for an observation or action space that can't be turned into tensors (Text, Graph ...).
    """

    def __init__(self, env: AnyVectorEnv, *, autoreset_mode: AutoresetMode | str | None = None) -> None:
        self.env, self.num_envs = env, env.num_envs
        self.autoreset_mode = _mode(env, autoreset_mode)
        self.single_observation_spec: SpecTree = from_space(env.single_observation_space)
        self.single_action_spec: SpecTree = from_space(env.single_action_space)
        self.observation: Tree = None
        """What to act on next: tree of [N, ...], never written to again. None before the first reset."""
        self.seeds: tuple[int, ...] = ()
        """What the envs were seeded with last: one seed an env, or a single one where the env takes no list."""
        self._action_space = env.action_space
        self._all_valid = np.broadcast_to(np.True_, self.num_envs)
        self._pending: np.ndarray | None = None  # bool [N]: will be reset by the next step (NEXT_STEP)
        base = env.unwrapped
        self._takes_seeds = isinstance(base, (SyncVectorEnv, AsyncVectorEnv))
        self._watch_final = self.autoreset_mode is AutoresetMode.SAME_STEP
        if self._watch_final and isinstance(base, SyncVectorEnv):
            base.envs = [e if isinstance(e, KeepFinalObservation) else KeepFinalObservation(e) for e in base.envs]
            self._watch_final = False
        # Gymnasium 1.4: without shared memory, reset() of an AsyncVectorEnv leaves the autoreset flags set, so that
        # an env that had just ended ignores the first action after it too, and is reset once more.
        self._keeps_flags = isinstance(base, AsyncVectorEnv) and not base.shared_memory

    def reset(self, seed: int | None = None) -> Tree:
        """Start new episodes in all envs.

        :param seed: of all envs; each gets its own, distinct from the others'. ``None`` goes on with the random
            numbers of the envs, except the first time, when the seeds are drawn from the operating system.
        :return: observation, tree of [N, ...].
        """
        seeds: Any = None
        if seed is not None or not self.seeds:
            self.seeds = _distinct_seeds(seed, self.num_envs if self._takes_seeds else 1)
            seeds = list(self.seeds) if self._takes_seeds else self.seeds[0]
        observation, _ = self.env.reset(seed=seeds)
        if not self._keeps_flags:
            self._pending = None
        self.observation = _own(observation)
        return self.observation

    def step(self, actions: Tree) -> Steps:
        """Take one action in each env.

        :param actions: tree of [N, ...], as the action space is nested.
        :raises SpecError: if the actions do not fit the action space in nesting, shape or kind of dtype.
        :raises RLCoreError: before the first ``reset``, or if a SAME_STEP env gives no final observation.
        """
        if self.observation is None:
            raise RLCoreError("step() before reset(): call reset(seed) of the VectorAdapter first")
        acted = self.env.step(_to_env(self._action_space, actions))
        raw, raw_reward, raw_terminated, raw_truncated, infos = acted
        observation: Tree = _own(raw)
        reward = np.array(raw_reward, np.float32)
        terminated, truncated = np.array(raw_terminated, np.bool_), np.array(raw_truncated, np.bool_)
        valid, following = self._all_valid, observation
        if self._pending is not None:
            valid, reward[self._pending] = ~self._pending, 0
            terminated, truncated, self._pending = terminated & valid, truncated & valid, None
        ended = terminated | truncated
        if np.count_nonzero(ended):
            if self.autoreset_mode is AutoresetMode.NEXT_STEP:
                self._pending = ended
            elif self.autoreset_mode is AutoresetMode.SAME_STEP:
                observation = self._with_final(following, infos, ended)
            else:
                following = _own(observation)
                restarted, _ = self.env.reset(options={"reset_mask": ended.copy()})
                _copy_rows(following, restarted, ended, ended)
        self.observation = following
        return Steps(observation, reward, terminated, truncated, valid)

    def close(self) -> None:
        self.env.close()

    def _with_final(self, reset_observation: Tree, infos: Mapping[str, Any], ended: np.ndarray) -> Tree:
        """A copy of the observations with the final ones in the rows that ended."""
        final, has = infos.get("final_obs"), infos.get("_final_obs", ended)
        if final is None or np.count_nonzero(ended & ~np.asarray(has, np.bool_)):
            raise RLCoreError(
                f"{self.env} says it resets in the same step, but infos['final_obs'] lacks the last observation of "
                f"envs {np.flatnonzero(ended).tolist()} (infos has {sorted(infos)})"
            )
        observation = _own(reset_observation)
        if isinstance(final, np.ndarray) and final.dtype == np.object_:
            for i in np.flatnonzero(ended):  # one unbatched observation an env
                _copy_rows(observation, final[i], i, ...)
        else:
            _copy_rows(observation, final, ended, ended)
        if self._watch_final and not _same_rows(observation, self.observation, ended):
            self._watch_final = False  # a reused buffer shows at the very first end
            if _same_rows(observation, reset_observation, ended):
                text = (
                    f"{self.env}: the last observation of an episode equals the first of the next. If the env reuses "
                    "its buffer, the reset overwrote it: wrap the env in rlcore.envs.KeepFinalObservation"
                )
                warnings.warn(text, RuntimeWarning, stacklevel=3)
        return observation


def _mode(env: AnyVectorEnv, given: AutoresetMode | str | None) -> AutoresetMode:
    own = (env.metadata or {}).get("autoreset_mode")
    if own is None and given is None:
        hint = "set it there, or give autoreset_mode to the VectorAdapter"
        raise ConfigError(f"{env} does not say how it resets: metadata['autoreset_mode'] is missing; {hint}")
    try:
        modes = [AutoresetMode(value) for value in (own, given) if value is not None]
    except ValueError as e:
        raise ConfigError(f"{env}: {e}, expected one of {', '.join(m.value for m in AutoresetMode)}") from e
    if modes[0] is not modes[-1]:
        raise ConfigError(f"autoreset_mode is {modes[-1].value}, but {env} says {modes[0].value}")
    return modes[0]


def _distinct_seeds(seed: int | None, count: int) -> tuple[int, ...]:
    """``count`` different seeds of 31 bits (some envs take no more)."""
    sequence, size = np.random.SeedSequence(seed), count
    while True:
        seeds = list(dict.fromkeys((sequence.generate_state(size) >> 1).tolist()))
        if len(seeds) >= count:
            return tuple(seeds[:count])
        size *= 2


def _to_env(space: gym.Space[Any], actions: Tree) -> Tree:
    """A tree of [N, ...] as an env with this (batched) action space takes it."""
    if isinstance(space, gym.spaces.Dict):
        if not isinstance(actions, Mapping) or set(actions) != set(space.spaces):
            raise SpecError(f"actions: got {type(actions).__name__}, expected a dict with keys {sorted(space.spaces)}")
        return {key: _to_env(sub, actions[key]) for key, sub in space.spaces.items()}
    if isinstance(space, gym.spaces.Tuple):
        if not isinstance(actions, (tuple, list)) or len(actions) != len(space.spaces):
            raise SpecError(f"actions: got {type(actions).__name__}, expected a tuple of {len(space.spaces)}")
        return tuple(map(_to_env, space.spaces, actions))
    array, dtype, shape = np.asarray(actions), np.dtype(space.dtype), space.shape
    if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise SpecError(f"actions: got {array.dtype}{list(array.shape)}, expected {dtype}{list(shape or ())}")
    return array.astype(dtype, copy=False)


def _own(tree: Tree) -> Tree:
    return tree.copy() if isinstance(tree, np.ndarray) else optree.tree_map(np.array, tree)


def _copy_rows(into: Tree, source: Tree, rows: Any, source_rows: Any) -> None:
    if isinstance(into, np.ndarray):
        into[rows] = np.asarray(source)[source_rows]
        return
    for key in into if isinstance(into, Mapping) else range(len(into)):  # by key: an OrderedDict has its own order
        _copy_rows(into[key], source[key], rows, source_rows)


def _same_rows(a: Tree, b: Tree, rows: np.ndarray) -> bool:
    return all(map(lambda x, y: np.array_equal(x[rows], y[rows]), optree.tree_leaves(a), optree.tree_leaves(b)))


class EpisodeStats:
    """Undiscounted return (float64) and length of every episode, over the valid rows of N envs.

    :ivar returns: float64 [N], :ivar lengths: int64 [N], both of the running episodes.
    """

    def __init__(self, num_envs: int) -> None:
        self.returns, self.lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)

    def reset(self) -> None:
        """Forget the running episodes; call it with ``VectorAdapter.reset``."""
        self.returns[:], self.lengths[:] = 0, 0

    def add(self, steps: Steps) -> list[tuple[float, int]]:
        """Count one step of all envs: (return, length) of each episode that ended with it, by env."""
        ended = (steps.terminated | steps.truncated) & steps.valid
        np.add(self.returns, steps.reward, out=self.returns, where=steps.valid)
        self.lengths += steps.valid
        if not np.count_nonzero(ended):
            return []
        finished = list(zip(self.returns[ended].tolist(), self.lengths[ended].tolist(), strict=True))
        self.returns[ended], self.lengths[ended] = 0, 0
        return finished
