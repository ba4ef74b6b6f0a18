"""Small worlds, registered with Gymnasium under ``rlcore/...``: see docs/environments.md.

Each has its rules in one class (a :class:`rlcore.envs.worlds.world.World`), and two envs that follow them: a
``gymnasium.Env``, and a ``gymnasium.vector.VectorEnv`` that steps all its copies at once. Their modules are imported
when an env is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium

_HERE = "rlcore.envs.worlds"
WORLDS: Mapping[str, tuple[str, int | None, Mapping[str, Any]]] = {
    "rlcore/GridWorld2x2-v0": ("grid:GridWorld", 50, {"map": "2x2"}),
    "rlcore/GridWorld4x4-v0": ("grid:GridWorld", 100, {"map": "4x4"}),
    "rlcore/GridWorld8x8-v0": ("grid:GridWorld", 200, {"map": "8x8"}),
    "rlcore/FourRooms-v0": ("grid:GridWorld", 500, {"map": "four_rooms"}),
    "rlcore/LongChain-v0": ("grid:GridWorld", 2000, {"map": "long_chain"}),
    "rlcore/MemoryCue-v0": ("memory_cue:MemoryCue", None, {}),
    "rlcore/Bandit-v0": ("bandit:Bandit", None, {}),
    "rlcore/RandomEnv-v0": ("random_env:Random", None, {}),
    "rlcore/GaussianDensity-v0": ("gaussian_density:GaussianDensity", None, {}),
}
"""Id -> where its envs are, steps after which an episode is truncated, and options."""


def register_worlds() -> None:
    """Tell Gymnasium of the worlds. Ids that it knows already are left as they are."""
    for env_id, (where, max_episode_steps, options) in WORLDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=f"{_HERE}.{where}Env",
                vector_entry_point=f"{_HERE}.{where}VectorEnv",
                max_episode_steps=max_episode_steps,
                kwargs=dict(options),
            )
