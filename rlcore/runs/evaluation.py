"""Greedy evaluation in environments of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlcore.envs.vector import EpisodeStats, VectorAdapter, make_vector
from rlcore.plugins.events import Evaluation
from rlcore.workflows.built_agent import BuiltAgent


def evaluate(agent: BuiltAgent, env: Any, *, episodes: int, seed: int, num_envs: int | None = None) -> Evaluation:
    """Run whole greedy episodes; training is not touched.

    :param num_envs: environments stepped together; up to 20, or as many as a vector env has, if None.

    Each env plays a fixed number of them: counting the first to end would favour the short ones.
    """
    adapter = VectorAdapter(make_vector(env, num_envs or min(episodes, 20), exact=num_envs is not None))
    left = np.full(adapter.num_envs, episodes // adapter.num_envs)
    left[: episodes % adapter.num_envs] += 1
    stats, returns, lengths = EpisodeStats(adapter.num_envs), [], []
    try:
        adapter.reset(seed)
        while left.any():
            steps = adapter.step(agent.act(adapter.observation))
            ended = np.flatnonzero((steps.terminated | steps.truncated) & steps.valid)
            for i, (total, length) in zip(ended, stats.add(steps), strict=True):
                if left[i]:
                    left[i] -= 1
                    returns.append(total)
                    lengths.append(length)
    finally:
        adapter.close()
    return Evaluation(returns, lengths)
