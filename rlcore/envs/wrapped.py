"""WrappedEnv: an environment with options and wrappers, as a function that makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from rlcore.component_specs import ComponentSpec
from rlcore.errors import ConfigError


@dataclass(frozen=True)
class WrappedEnv:
    """Called, it makes one environment. It can be sent to another process if what it holds can.

    :ivar env: Gymnasium id, or a function that makes one environment.
    :ivar options: keyword arguments of ``gymnasium.make``.
    :ivar wrappers: the first is the innermost.
    """

    env: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[ComponentSpec] = ()

    def __call__(self) -> gym.Env[Any, Any]:
        made: Any = self._make()
        if isinstance(made, VectorEnv):
            raise ConfigError("wrappers are for single environments, but the function given makes a vector environment")
        for spec in self.wrappers:
            made = spec.build(env=made)
        return made  # type: ignore[no-any-return]

    def _make(self) -> Any:
        if not isinstance(self.env, str):
            return self.env(**self.options)
        from rlcore.envs.vector import make_vector

        if not self.options:
            vector: Any = make_vector(self.env, 1)  # one road for ids and their errors
            return vector.envs[0]
        make_vector(self.env, 1).close()  # says what is wrong with the id
        try:
            return gym.make(self.env, **self.options)
        except (TypeError, ValueError, gym.error.Error) as e:
            raise ConfigError(f"environment '{self.env}' with env_options {dict(self.options)}: {e}") from e


def wrapped(env: Any, options: Mapping[str, Any], wrappers: Sequence[ComponentSpec]) -> Any:
    """The environment as it is, if there is nothing to add: its own vectorised form stays in use."""
    return WrappedEnv(env, options, tuple(wrappers)) if options or wrappers else env
