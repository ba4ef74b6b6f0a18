"""The public functions: train an agent, or make one for a loop of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcore.plugins.events import Evaluation
from rlcore.runs.config import load_config, resolve
from rlcore.runs.evaluation import evaluate
from rlcore.runs.train import Status, TrainResult, run
from rlcore.runs.weights_file import load_weights, save_weights
from rlcore.workflows.built_agent import BuiltAgent

__all__ = ["evaluate", "load_config", "load_weights", "make_agent", "save_weights", "train"]


def train(
    agent: Any,
    *,
    env: Any,
    backend: Any = None,
    mode: str | None = None,
    device: str | None = None,
    actor_backend: Any = None,
    executor: Any = None,
    env_options: Mapping[str, Any] | None = None,
    wrappers: Sequence[Any] | None = None,
    evaluation_wrappers: Sequence[Any] | None = None,
    num_envs: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    evaluation_episodes: int | None = None,
    hooks: Sequence[Any] | None = None,
    on_hook_error: str | None = None,
    config: Mapping[str, Any] | None = None,
    run_dir: str | Path | None = None,
    on_status: Callable[[Status], None] | None = None,
    on_evaluation: Callable[[str, Evaluation], None] | None = None,
) -> TrainResult:
    """Train an agent, with a greedy evaluation before and after.

    ``train(**load_config("runs/.../config.yaml"))`` repeats a run.

    :param agent: name (``dqn``), class, mapping of a name and settings, or a JSON or YAML file that holds one.
    :param env: a Gymnasium id, or a function that makes an environment or a vector environment.
    :param backend: name of a graph backend (``torch``, ``rl-torch:torch``), or a GraphBuilder object;
        ``RLCORE_BACKEND``, or ``torch``, if None.
    :param mode: ``eager`` or ``static``.
    :param actor_backend: of the sampler, the learner's if None; ``numpy`` is light and fast for small networks.
    :param executor: name, mapping of a name and options, or an Executor object; ``RLCORE_EXECUTOR``, or ``local``,
        if None.
    :param env_options: keyword arguments of ``gymnasium.make``.
    :param wrappers: specs of wrappers around each environment, the first innermost: ``["frame_stack"]``.
    :param evaluation_wrappers: in evaluation, in place of ``wrappers``.
    :param steps: env steps over all envs; the preset's, or 100,000, if None.
    :param hooks: observers: names of hook plugins, or objects with hooks; those of ``RLCORE_HOOKS``, or all that are
        installed, if None.
    :param on_hook_error: what an observer's exception does: ``raise``, ``warn`` or ``disable``;
        ``RLCORE_ON_HOOK_ERROR``, or ``raise``, if None.
    :param config: settings of the agent, over the preset of the environment and the defaults.
    :param run_dir: where the run lies; a new folder under ``runs/`` if None. One that isn't empty is refused.
    :raises ConfigError: for a setting that is unknown or wrong, before anything starts.
    :raises RLPluginError: if the backend or executor is missing or broken.
    """
    complete, learner, actor = resolve(
        agent,
        env,
        config or {},
        backend=backend,
        mode=mode,
        device=device,
        actor_backend=actor_backend,
        executor=executor,
        env_options=env_options,
        wrappers=wrappers,
        evaluation_wrappers=evaluation_wrappers,
        num_envs=num_envs,
        steps=steps,
        seed=seed,
        evaluation_episodes=evaluation_episodes,
        hooks=hooks,
        on_hook_error=on_hook_error,
    )
    return run(complete, learner, actor, run_dir=run_dir, on_status=on_status, on_evaluation=on_evaluation)


def make_agent(
    agent: Any,
    *,
    env: Any,
    backend: Any = None,
    mode: str | None = None,
    device: str | None = None,
    seed: int = 0,
    env_options: Mapping[str, Any] | None = None,
    wrappers: Sequence[Any] | None = None,
    hooks: Sequence[Any] | None = None,
    on_hook_error: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> BuiltAgent:
    """An untrained agent for a loop of one's own: ``agent.act(observation)``, ``agent.update(batch)``.

    Parameters as :func:`train`.
    """
    run = {"backend": backend, "mode": mode, "device": device, "seed": seed}
    run |= {"env_options": env_options, "wrappers": wrappers, "hooks": hooks, "on_hook_error": on_hook_error}
    _, recipe, _ = resolve(agent, env, config or {}, **run)
    return BuiltAgent(recipe)
