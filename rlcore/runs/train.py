"""One training run from its config to its result."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from rlcore.errors import ConfigError
from rlcore.plugins.manager import make_executor
from rlcore.runs.config import RunConfig
from rlcore.runs.evaluation import Evaluation, evaluate
from rlcore.runs.run_dir import MetricsFile, RunDir
from rlcore.runs.weights_file import save_weights
from rlcore.workflows.built_agent import BuiltAgent
from rlcore.workflows.off_policy import Progress, off_policy
from rlcore.workflows.recipe import Recipe

WORKFLOWS = {"off_policy": off_policy}


@dataclass(frozen=True)
class TrainResult:
    """:ivar agent: acts with the trained weights, on the sampler's backend.
    :ivar seconds: of training alone, without the evaluations."""

    run_dir: Path
    before: Evaluation
    after: Evaluation
    agent: BuiltAgent
    seconds: float
    env_steps: int
    updates: int


@dataclass(frozen=True)
class Status:
    """What a progress display shows."""

    env_steps: int
    steps: int
    seconds: float
    return_mean: float | None
    metrics: dict[str, float]


def run(
    config: RunConfig,
    learner: Recipe,
    actor: Recipe,
    *,
    run_dir: str | Path | None = None,
    on_status: Callable[[Status], None] | None = None,
    on_evaluation: Callable[[str, Evaluation], None] | None = None,
) -> TrainResult:
    """Evaluate, train, evaluate; everything that is left lies in the run directory.

    :param on_status: called after each turn of the workflow.
    :param on_evaluation: called with ``before`` or ``after``, and the result.
    """
    if isinstance(config.env, (gymnasium.Env, gymnasium.vector.VectorEnv)):
        raise ConfigError("training and evaluation need environments of their own: give a function that makes one")
    if run_dir is not None:
        RunDir.check(run_dir)
    evaluation_seed = int(np.random.SeedSequence([config.seed, 0xE7A1]).generate_state(1)[0])

    def evaluated(name: str) -> Evaluation:
        result = evaluate(agent, config.env, episodes=config.evaluation_episodes, seed=evaluation_seed)
        if on_evaluation is not None:
            on_evaluation(name, result)
        return result

    executor = make_executor(config.executor, config.executor_options)
    agent = BuiltAgent(actor, actor.agent.acting)  # what can't be built fails here, before the directory is made
    before = evaluated("before")
    directory = RunDir.create(config, run_dir)
    metrics = MetricsFile(directory.path / "metrics.csv")
    returns: deque[float] = deque(maxlen=100)
    lengths: deque[int] = deque(maxlen=100)
    log_every, logged, episodes = max(1, config.steps // 200), 0, 0
    started = time.perf_counter()
    last: Progress | None = None
    try:
        workflow = WORKFLOWS[learner.agent.workflow]
        for last in workflow(
            executor, learner, actor, env=config.env, num_envs=config.num_envs, steps=config.steps, seed=config.seed
        ):
            for total, length in last.episodes:
                returns.append(total)
                lengths.append(length)
            episodes += len(last.episodes)
            seconds = time.perf_counter() - started
            mean = float(np.mean(returns)) if returns else None
            if last.env_steps - logged >= log_every or last.env_steps >= config.steps:
                logged = last.env_steps
                row: dict[str, Any] = {
                    "env_steps": last.env_steps,
                    "updates": last.updates,
                    "seconds": round(seconds, 3),
                }
                row |= {"episodes": episodes, "return_mean": mean, **last.metrics}
                row["length_mean"] = float(np.mean(lengths)) if lengths else None
                metrics.write(row)
            if on_status is not None:
                on_status(Status(last.env_steps, config.steps, seconds, mean, last.metrics))
    finally:
        # Also after an error or Ctrl-C: what was trained is kept.
        if last is not None and last.weights is not None:
            save_weights(directory.path / "weights.safetensors", last.weights)
        metrics.close()
        executor.shutdown()
    assert last is not None and last.weights is not None
    trained = time.perf_counter() - started
    agent.set_weights(last.weights)
    after = evaluated("after")
    result = {
        "before": {"mean": before.mean, "std": before.std, "episodes": len(before.returns)},
        "after": {"mean": after.mean, "std": after.std, "episodes": len(after.returns)},
        "env_steps": last.env_steps,
        "updates": last.updates,
        "seconds": round(trained, 3),
    }
    directory.write_json("result.json", result)
    return TrainResult(directory.path, before, after, agent, trained, last.env_steps, last.updates)
