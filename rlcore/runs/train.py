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
from rlcore.executor import Executor
from rlcore.plugins.events import Evaluation, RolloutStats, SessionInfo, UpdateStats
from rlcore.runs.config import RunConfig, name_and_options
from rlcore.runs.evaluation import evaluate
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
    session, hooks = learner.session, learner.session.hooks
    executor = session.executor(*name_and_options(config.executor))
    agent = BuiltAgent(actor, actor.agent.acting)  # what can't be built fails here, before the directory is made
    directory = RunDir.create(config, session, run_dir)
    plugins = [" ".join(plugin[:4]) for plugin in session.plugin_set]
    info = SessionInfo(session.id, directory.settings, directory.path, plugins)
    evaluation_seed = int(np.random.SeedSequence([config.seed, 0xE7A1]).generate_state(1)[0])

    def evaluated(name: str) -> Evaluation:
        result = evaluate(agent, config.evaluation_env, episodes=config.evaluation_episodes, seed=evaluation_seed)
        hooks.after_evaluation(name, result)
        if on_evaluation is not None:
            on_evaluation(name, result)
        return result

    error: BaseException | None = None
    try:
        hooks.session_start(info)
        before = evaluated("before")
        last, trained = _train(config, learner, actor, executor, directory, on_status)
        agent.set_weights(last.weights)
        after = evaluated("after")
    except BaseException as e:
        error = e
        raise
    finally:
        try:
            executor.shutdown()
        finally:
            hooks.session_finish(info, error)
    result = {
        "before": {"mean": before.mean, "std": before.std, "episodes": len(before.returns)},
        "after": {"mean": after.mean, "std": after.std, "episodes": len(after.returns)},
        "env_steps": last.env_steps,
        "updates": last.updates,
        "seconds": round(trained, 3),
    }
    directory.write_json("result.json", result)
    return TrainResult(directory.path, before, after, agent, trained, last.env_steps, last.updates)


def _train(
    config: RunConfig,
    learner: Recipe,
    actor: Recipe,
    executor: Executor,
    directory: RunDir,
    on_status: Callable[[Status], None] | None,
) -> tuple[Any, float]:
    """The workflow from its first to its last turn. What was trained is saved also after an error or Ctrl-C.

    :return: the last turn, and the seconds that all took.
    """
    hooks = learner.session.hooks
    metrics = MetricsFile(directory.path / "metrics.csv")
    returns: deque[float] = deque(maxlen=100)
    lengths: deque[int] = deque(maxlen=100)
    log_every, logged, episodes = max(1, config.steps // 200), 0, 0
    started = time.perf_counter()
    last: Progress | None = None
    try:
        workflow = WORKFLOWS[learner.agent.workflow]
        turns = workflow(
            executor,
            learner,
            actor,
            env=config.training_env,
            num_envs=config.num_envs,
            steps=config.steps,
            seed=config.seed,
        )
        for turn in turns:
            new_steps = turn.env_steps - (last.env_steps if last else 0)
            new_updates = turn.updates - (last.updates if last else 0)
            last = turn
            hooks.after_rollout(RolloutStats(new_steps, turn.env_steps, turn.episodes))
            if new_updates:
                hooks.after_update(UpdateStats(turn.updates, turn.env_steps, turn.metrics))
                if turn.weights is not None:
                    hooks.weights_published(turn.weights.version)
            for total, length in turn.episodes:
                returns.append(total)
                lengths.append(length)
            episodes += len(turn.episodes)
            seconds = time.perf_counter() - started
            mean = float(np.mean(returns)) if returns else None
            if turn.env_steps - logged >= log_every or turn.env_steps >= config.steps:
                logged = turn.env_steps
                row: dict[str, Any] = {
                    "env_steps": turn.env_steps,
                    "updates": turn.updates,
                    "seconds": round(seconds, 3),
                }
                row |= {"episodes": episodes, "return_mean": mean, **turn.metrics}
                row["length_mean"] = float(np.mean(lengths)) if lengths else None
                metrics.write(row)
            if on_status is not None:
                on_status(Status(turn.env_steps, config.steps, seconds, mean, turn.metrics))
    finally:
        metrics.close()
        if last is not None and last.weights is not None:
            path = directory.path / "weights.safetensors"
            save_weights(path, last.weights)
    assert last is not None and last.weights is not None
    manifest = {"env_steps": last.env_steps, "updates": last.updates, "weights_version": last.weights.version}
    hooks.after_checkpoint(path, manifest)
    return last, time.perf_counter() - started
