"""The Atari protocol: what an agent sees of an ALE game (Mnih et al. 2015; Machado et al. 2018)."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rlcore.envs.wrappers import FrameStack
from rlcore.errors import ConfigError


class Atari(gym.Wrapper[np.ndarray, Any, np.ndarray, Any]):
    """No-op starts, frame skip with the maximum of the last two frames, grey 84x84, a stack of 4; on request a life
    lost ends an episode, and FIRE is pressed after a reset. uint8 [84, 84, 4].

    Gymnasium's own AtariPreprocessing skips, pools and resizes. The game itself ends an episode after 108,000 frames
    (27,000 steps of 4), as truncated. Rewards stay raw: clip them with the agent's ``reward_clip``.

    Make the environment without a frame skip of its own: ``ale_py:ALE/Pong-v5`` with ``env_options: {frameskip: 1}``
    (and ``repeat_action_probability: 0`` for games without sticky actions).

    :param noop_max: up to so many no-ops at a start. ``frame_skip``: frames a step.
    :param life_loss_ends: a life lost is a termination, after which the game goes on; for training only.
    :param fire_reset: press FIRE after each reset, in games that start so.
    :param num_stack: frames in an observation.
    :raises ConfigError: if the environment skips frames itself, is no ALE game, or OpenCV is missing.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        noop_max: int = 30,
        frame_skip: int = 4,
        screen_size: int = 84,
        life_loss_ends: bool = False,
        fire_reset: bool = True,
        num_stack: int = 4,
    ) -> None:
        if not hasattr(env.unwrapped, "ale"):
            raise ConfigError(f"atari wraps games of the Arcade Learning Environment; {env.unwrapped} is none")
        if frame_skip > 1 and getattr(env.unwrapped, "_frameskip", 1) != 1:
            raise ConfigError("atari skips frames itself; make the game without: env_options {frameskip: 1}")
        try:
            made: gym.Env[Any, Any] = gym.wrappers.AtariPreprocessing(
                env, noop_max, frame_skip, screen_size, terminal_on_life_loss=False, grayscale_newaxis=True
            )
        except gym.error.DependencyNotInstalled as e:
            raise ConfigError(f"atari: {e}. Fix: pip install 'rlcore[atari]'") from e
        if life_loss_ends:
            made = LifeLossEnds(made)
        meanings = env.unwrapped.get_action_meanings()  # type: ignore[attr-defined]
        if fire_reset and "FIRE" in meanings:
            made = FireReset(made, meanings.index("FIRE"))
        super().__init__(FrameStack(made, num_stack))


class LifeLossEnds(gym.Wrapper[Any, Any, Any, Any]):
    """A life lost is a termination. The reset after it starts no new game: a no-op step takes its place.

    ``info["game_over"]`` says whether the game itself has ended: returns of whole games end there.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._lives, self._over = 0, True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation: Any = None
        info: dict[str, Any] = {}
        if seed is None and not self._over:
            observation, _, terminated, truncated, info = self.env.step(0)
            self._over = terminated or truncated
        if seed is not None or self._over:
            observation, info = self.env.reset(seed=seed, options=options)
        self._lives, self._over = self._count(), False
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._over, lives = terminated or truncated, self._count()
        lost, self._lives = 0 < lives < self._lives, lives
        return observation, reward, terminated or lost, truncated, {**info, "game_over": self._over}

    def _count(self) -> int:
        return int(self.env.unwrapped.ale.lives())  # type: ignore[attr-defined]


class FireReset(gym.Wrapper[Any, Any, Any, Any]):
    """Presses FIRE after each reset; games that start so would otherwise wait for ever."""

    def __init__(self, env: gym.Env[Any, Any], fire: int) -> None:
        super().__init__(env)
        self._fire = fire

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        _, info = self.env.reset(seed=seed, options=options)
        pressed, _, terminated, truncated, more = self.env.step(self._fire)
        if terminated or truncated:
            return self.env.reset(options=options)
        return pressed, {**info, **more}
