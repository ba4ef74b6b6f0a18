"""Wrappers of one environment, chosen by name in a config. Where Gymnasium's own are right, those are registered."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from rlcore.errors import ConfigError


class FrameStack(gym.Wrapper[np.ndarray, Any, np.ndarray, Any]):
    """The last ``num_frames`` observations along the last axis, the newest last (Mnih et al. 2015).

    Box [..., C] -> Box [..., C * num_frames]; [H, W] -> [H, W, num_frames]. Each observation is an array of its own.

    :param padding: before the first step the first frame is repeated (``reset``), or it stands behind ``zero``\\ s.
    :raises ConfigError: for another space, or ``num_frames`` below 1.
    """

    def __init__(
        self, env: gym.Env[Any, Any], num_frames: int = 4, *, padding: Literal["reset", "zero"] = "reset"
    ) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, Box):
            raise ConfigError(f"frame_stack needs a Box observation, this environment's is {space}")
        if num_frames < 1:
            raise ConfigError(f"frame_stack: num_frames is {num_frames}, expected 1 or more")
        self._new_axis = len(space.shape) == 2
        self._width = 1 if self._new_axis else space.shape[-1]
        self._padding, self.num_frames = padding, num_frames
        low, high = (np.concatenate([self._frame(b)] * num_frames, -1) for b in (space.low, space.high))
        self.observation_space = Box(low, high, dtype=space.dtype)
        self._stack = np.zeros(self.observation_space.shape, space.dtype)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        frame = self._frame(observation)
        if self._padding == "reset":
            return self._keep(np.concatenate([frame] * self.num_frames, -1)), info
        self._stack = np.zeros_like(self._stack)
        return self._push(frame), info

    def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._push(self._frame(observation)), reward, terminated, truncated, info

    def _frame(self, observation: np.ndarray) -> np.ndarray:
        return observation[..., None] if self._new_axis else observation

    def _push(self, frame: np.ndarray) -> np.ndarray:
        return self._keep(np.concatenate([self._stack[..., self._width :], frame], -1))

    def _keep(self, stack: np.ndarray) -> np.ndarray:
        self._stack = stack  # concatenate made it: no environment writes into it
        return stack.copy()


class OneHotObservation(gym.ObservationWrapper[np.ndarray, Any, Any]):
    """Discrete of n values -> float32 [n].

    :raises ConfigError: for another space.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, Discrete):
            raise ConfigError(f"one_hot_observation needs a Discrete observation, this environment's is {space}")
        self._start = int(space.start)
        self._rows: np.ndarray = np.eye(int(space.n), dtype=np.float32)
        self.observation_space = Box(0.0, 1.0, (int(space.n),), np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        return np.array(self._rows[int(observation) - self._start])


class RescaleAction(gym.wrappers.RescaleAction[Any, Any]):
    """Gymnasium's, for one range of all actions: ``low`` to ``high`` instead of the environment's own bounds.

    :raises ConfigError: for a space that is no bounded Box.
    """

    def __init__(self, env: gym.Env[Any, Any], *, low: float = -1.0, high: float = 1.0) -> None:
        space = env.action_space
        if not isinstance(space, Box) or not space.is_bounded() or not low < high:
            raise ConfigError(
                f"rescale_action needs a bounded Box of actions and low < high; got {space}, {low}, {high}"
            )
        shape, dtype = space.shape, space.dtype
        super().__init__(env, np.full(shape, low, dtype), np.full(shape, high, dtype))


class ClipReward(gym.RewardWrapper[Any, Any]):
    """Rewards between -``bound`` and ``bound``. Episode returns are those of clipped rewards, then: to keep the raw
    ones in the statistics, use the agent's own ``reward_clip`` instead."""

    def __init__(self, env: gym.Env[Any, Any], *, bound: float = 1.0) -> None:
        super().__init__(env)
        self.bound = bound

    def reward(self, reward: Any) -> float:
        return float(np.clip(reward, -self.bound, self.bound))
