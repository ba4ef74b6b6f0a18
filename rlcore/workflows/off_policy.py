"""Off-policy training: a sampler fills the learner's replay, the learner's weights go back to the sampler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlcore.backend import Weights
from rlcore.envs.vector import EpisodeStats, VectorAdapter, make_vector
from rlcore.executor import Executor
from rlcore.memories.n_step import NStepBuilder
from rlcore.workflows.recipe import Recipe

Tree = Any


@dataclass
class Rollout:
    """What a sampler brings home.

    :ivar batches: n-step transitions, in the order in which they were completed.
    :ivar env_steps: real ones, over all envs; rows of an automatic reset don't count.
    :ivar episodes: (return, length) of each episode that ended.
    """

    batches: list[Tree]
    env_steps: int
    episodes: list[tuple[float, int]]


@dataclass(frozen=True)
class Progress:
    """One turn of the workflow: totals so far, and what is new.

    :ivar weights: the newest that the sampler acts with; None before the first update.
    """

    env_steps: int
    updates: int
    episodes: list[tuple[float, int]]
    metrics: dict[str, float] = field(default_factory=dict)
    weights: Weights | None = None


class Sampler:
    """A vector env and the acting part of the graph, nothing that only the learner needs."""

    def __init__(self, recipe: Recipe, env: Any, num_envs: int, seed: np.random.SeedSequence, total: int) -> None:
        env_seed, noise_seed = seed.spawn(2)
        config: Any = recipe.config
        self.env = VectorAdapter(make_vector(env, num_envs))
        self.env.reset(int(env_seed.generate_state(1)[0]))
        self.actor = recipe.build(recipe.agent.acting)
        self.actor.rng = np.random.default_rng(noise_seed)
        self.n_step = NStepBuilder(self.env.num_envs, config.n_step, config.gamma)
        self.stats = EpisodeStats(self.env.num_envs)
        self.env_steps, self.total = 0, total
        self.reward_clip: float | None = config.reward_clip

    def set_weights(self, weights: Weights) -> None:
        self.actor.set_weights(weights)

    def collect(self, env_steps: int) -> Rollout:
        """Step until at least ``env_steps`` real ones are done."""
        env, actor, batches = self.env, self.actor, []
        clip = self.reward_clip
        episodes: list[tuple[float, int]] = []
        done = 0
        while done < env_steps:
            observation = env.observation
            progress = np.asarray(min(1.0, (self.env_steps + done) / self.total), np.float32)
            action = actor("act", observation, progress)
            steps = env.step(action)
            batch = self.n_step.add(
                observation,
                action,
                steps.reward if clip is None else np.clip(steps.reward, -clip, clip),
                steps.terminated,
                steps.truncated,
                steps.next_observation,
                steps.valid,
            )
            if batch is not None:
                batches.append(batch)
            episodes += self.stats.add(steps)
            done += int(np.count_nonzero(steps.valid))
        self.env_steps += done
        return Rollout(batches, done, episodes)

    def close(self) -> None:
        self.env.close()


class Learner:
    """Replay and the learning part of the graph."""

    def __init__(self, recipe: Recipe, seed: np.random.SeedSequence) -> None:
        config: Any = recipe.config
        self.graph = recipe.build(("update", "sync"))
        self.replay = config.replay.build(capacity=config.replay_capacity, seed=seed)
        self.batch_size: int = config.batch_size

    def add(self, rollout: Rollout) -> None:
        for batch in rollout.batches:
            self.replay.add(batch)

    def ready(self) -> bool:
        return len(self.replay) > 0

    def learn(self, updates: int, progress: float) -> dict[str, float]:
        """Some updates; the mean of each scalar metric."""
        at = np.asarray(progress, np.float32)
        sums: dict[str, float] = {}
        for _ in range(updates):
            metrics = self.graph("update", self.replay.sample(self.batch_size), at)
            for name, value in metrics.items():
                if value.ndim == 0:
                    sums[name] = sums.get(name, 0.0) + float(value)
        return {name: total / updates for name, total in sums.items()}

    def sync(self) -> None:
        self.graph("sync")

    def weights(self) -> Weights:
        return self.graph.get_weights()


def off_policy(
    executor: Executor, learner: Recipe, actor: Recipe, *, env: Any, num_envs: int, steps: int, seed: int
) -> Iterator[Progress]:
    """Train for ``steps`` env steps; yields after each turn of sampling and learning.

    :param learner: builds the learner; ``actor`` the sampler, perhaps on another backend.
    :raises UnsupportedCapability: if the executor has no ``tasks``.
    """
    executor.require("tasks", by="the off-policy workflow")
    config: Any = learner.config
    sampler_seed, replay_seed = np.random.SeedSequence(seed).spawn(2)
    [learning] = executor.spawn(Learner, 1, learner, replay_seed)
    [sampling] = executor.spawn(Sampler, 1, actor, env, num_envs, sampler_seed, steps)
    weights: Weights = learning.call("weights").result()
    sampling.call("set_weights", weights).result()
    env_steps = updates = syncs = 0
    while env_steps < steps:
        wanted = min(config.train_every_env_steps, steps - env_steps)
        rollout: Rollout = sampling.call("collect", wanted).result()
        learning.call("add", rollout).result()
        env_steps += rollout.env_steps
        metrics: dict[str, float] = {}
        if env_steps >= config.learning_starts_env_steps and learning.call("ready").result():
            progress = min(1.0, env_steps / steps)
            metrics = learning.call("learn", config.updates_per_training, progress).result()
            updates += config.updates_per_training
            if config.target_update == "hard" and env_steps // config.target_sync_env_steps > syncs:
                syncs = env_steps // config.target_sync_env_steps
                learning.call("sync").result()
            weights = learning.call("weights").result()
            sampling.call("set_weights", executor.put(weights)).result()
        yield Progress(env_steps, updates, rollout.episodes, metrics, weights)
