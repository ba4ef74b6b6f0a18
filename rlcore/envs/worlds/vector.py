"""N copies of a world as a ``gymnasium.vector.VectorEnv``, stepped at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium.error import Error, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rlcore.envs.worlds.single import row
from rlcore.envs.worlds.world import BoolArray, Copies, World, positive
from rlcore.errors import ConfigError
from rlcore.specs import Tree

Info = dict[str, Any]


class WorldVectorEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` copies of :attr:`world_class`: what a SyncVectorEnv of the single envs gives, in all three modes.

    :param max_episode_steps: an episode is truncated with this step; None for never. ``gymnasium.make_vec`` hands
        over what the id was registered with.
    :param autoreset_mode: who resets an env whose episode has ended, and when; also in ``metadata``.
    :param options: of the world.
    :raises ConfigError: for an option that is out of range.
    """

    world_class: ClassVar[type[World]]

    def __init__(
        self,
        *,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **options: Any,
    ) -> None:
        self.num_envs = positive("num_envs", num_envs)
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError as e:
            raise ConfigError(f"autoreset_mode: {e}, expected {', '.join(m.value for m in AutoresetMode)}") from e
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.world = self.world_class(**options)
        self.single_observation_space, self.single_action_space = self.world.observation_space, self.world.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._copies = Copies(self.world, num_envs, max_episode_steps=max_episode_steps)
        self._seeds: tuple[int, ...] = ()
        self._started = False
        self._ended: BoolArray | None = None  # bool [N]: over, and not yet reset; None for none

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each env, as a SyncVectorEnv gives it; empty before the first reset."""
        return self._seeds

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Tree, Info]:
        """Start episodes.

        :param seed: one of all envs (env i gets ``seed + i``), or one an env, where None leaves it its random numbers.
            None goes on in all, except the first time, when the seeds come from the operating system.
        :param options: ``reset_mask`` (bool [N], one or more True): reset and seed these envs only.
        :return: observation (tree of [N, ...], of all envs), and an empty info.
        :raises Error: (of Gymnasium) for a seed that is negative or no integer.
        :raises ValueError: for seeds or a mask of another length, and for a mask without a True; TypeError for a mask
            that is no bool array.
        """
        seeds, mask = _seeds(seed, self.num_envs), _reset_mask(options, self.num_envs)
        if mask is None:
            self._seed(seeds)
            self._copies.start()
            self._started, self._ended = True, None
            return self._copies.observe(), {}
        if not self._started:
            raise ResetNeeded(f"{self} was not reset yet: call reset() without a reset_mask first")
        self._seed([s if m else None for s, m in zip(seeds, mask.tolist(), strict=True)])
        self._copies.start(np.flatnonzero(mask))
        if self._ended is not None:
            self._ended = _or_none(self._ended & ~mask)
        return self._copies.observe(), {}

    def step(
        self, actions: Tree
    ) -> tuple[Tree, np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], Info]:
        """Take one step in each env.

        :param actions: tree of [N, ...] in the action space; those of envs that NEXT_STEP resets are not used.
        :return: observation (tree of [N, ...]), reward (float64 [N]), terminated, truncated (bool [N]), infos (under
            SAME_STEP with ``final_obs`` and ``final_info`` where an episode ended, else empty). New arrays.
        :raises ResetNeeded: (of Gymnasium) before the first reset, and with DISABLED where an ended env was not reset.
        :raises InvalidAction: (of Gymnasium) for an action that is not in the action space.
        """
        copies, over = self._copies, self._ended
        if not self._started:
            raise ResetNeeded(f"{self} was not reset yet: call reset() first")
        action = self.world.actions(actions, self.num_envs)
        if over is None:
            reward, terminated, truncated = copies.step(action)
        elif self.autoreset_mode is AutoresetMode.DISABLED:
            ended = np.flatnonzero(over).tolist()
            raise ResetNeeded(f"the episodes of envs {ended} are over: call reset(options={{'reset_mask': ...}}) first")
        else:
            reward, terminated, truncated = copies.step(action, np.flatnonzero(~over))
            copies.start(np.flatnonzero(over))
        self._ended = _or_none(terminated | truncated)
        infos: Info = {}
        if self._ended is not None and self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = self._restart(self._ended)
            self._ended = None
        return copies.observe(), reward, terminated, truncated, infos

    def _restart(self, ended: BoolArray) -> Info:
        """Start anew where an episode ended, and say what was seen last there."""
        rows = np.flatnonzero(ended)
        last = self._copies.observe(rows)
        final = np.full(self.num_envs, None, np.object_)
        for k, i in enumerate(rows.tolist()):  # one object an env is what Gymnasium asks for
            final[i] = row(last, k)
        self._copies.start(rows)
        return {"final_obs": final, "_final_obs": ended, "final_info": {}, "_final_info": ended.copy()}

    def _seed(self, seeds: Sequence[int | None]) -> None:
        if not self._seeds:
            new = np.random.SeedSequence().generate_state(self.num_envs, np.uint64).tolist()
            seeds = [n if s is None else s for s, n in zip(seeds, new, strict=True)]
            self._seeds = (0,) * self.num_envs
        if any(s is not None for s in seeds):
            self._seeds = tuple(o if s is None else s for s, o in zip(seeds, self._seeds, strict=True))
            self._copies.streams.seed(seeds)


def _or_none(mask: BoolArray) -> BoolArray | None:
    return mask if np.count_nonzero(mask) else None


def _seeds(seed: int | Sequence[int | None] | None, n: int) -> list[int | None]:
    if seed is None:
        return [None] * n
    seeds: list[Any] = [seed + i for i in range(n)] if isinstance(seed, (int, np.integer)) else list(seed)
    if len(seeds) != n:
        raise ValueError(f"got {len(seeds)} seeds, expected one for each of the {n} envs")
    for s in seeds:
        if s is not None and (not isinstance(s, (int, np.integer)) or s < 0):
            raise Error(f"seed is {s!r}, expected an integer of 0 or more")
    return [None if s is None else int(s) for s in seeds]


def _reset_mask(options: Mapping[str, Any] | None, n: int) -> BoolArray | None:
    if options is None or "reset_mask" not in options:
        return None
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"reset_mask is {mask!r}, expected a NumPy array of bool")
    if mask.shape != (n,):
        raise ValueError(f"reset_mask has shape {mask.shape}, expected ({n},)")
    if not mask.any():
        raise ValueError("reset_mask is False everywhere, expected an env to reset")
    return mask
