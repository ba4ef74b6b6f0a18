"""RunConfig: every setting of a run, checked before anything starts."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import pydantic
import yaml
from pydantic import Field, NonNegativeInt, PositiveInt

from rlcore.agents.agent import Agent, AgentConfig
from rlcore.agents.registry import Preset, agent_class, preset
from rlcore.envs.vector import make_vector
from rlcore.errors import ConfigError, SpecError, nearest
from rlcore.specs import from_space
from rlcore.workflows.recipe import Recipe


class RunConfig(pydantic.BaseModel):
    """Complete: with it, :func:`rlcore.train` repeats the run."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    agent: str = Field(description="name of the agent")
    env: Any = Field(description="Gymnasium id; in code also a function that makes a (vector) environment")
    backend: Any = Field("torch", description="graph backend of the learner")
    mode: str | None = Field(None, description="eager or static; the backend's default if not set")
    device: str | None = Field(None, description="the backend's default if not set")
    actor_backend: Any = Field(None, description="graph backend of the sampler; the learner's if not set")
    executor: str = Field("local", description="where roles run")
    executor_options: dict[str, Any] = Field(default_factory=dict, description="settings of the executor")
    num_envs: PositiveInt = Field(1, description="environments stepped together")
    steps: PositiveInt = Field(100_000, description="env steps, over all envs")
    seed: NonNegativeInt = Field(0, description="of everything random in the run")
    evaluation_episodes: PositiveInt = Field(100, description="greedy episodes before and after training")
    config: dict[str, Any] = Field(default_factory=dict, description="settings of the agent")


def resolve(agent: str, env: Any, settings: Mapping[str, Any], **run: Any) -> tuple[RunConfig, Recipe, Recipe]:
    """Defaults, then the preset of the environment, then what was given; checked.

    :param settings: of the agent; keys ``executor.NAME`` are the executor's.
    :param run: fields of RunConfig; None means not given.
    :return: the complete config, the learner's recipe and the sampler's.
    :raises ConfigError: one line: what is wrong and the nearest right name.
    """
    cls = agent_class(agent)
    known = preset(agent, env) if isinstance(env, str) else Preset()
    given = {k: v for k, v in run.items() if v is not None}
    own = {k: v for k, v in settings.items() if not k.startswith("executor.")}
    options = {k.partition(".")[2]: v for k, v in settings.items() if k.startswith("executor.")}
    config: AgentConfig = validate(cls.config_class, {**known.settings, **own})
    fields = {**known.run, **given, "agent": agent, "env": env, "executor_options": options}
    complete: RunConfig = validate(RunConfig, {**fields, "config": config.model_dump()})
    observation, action = spaces_of(env, complete.num_envs)
    recipe = Recipe(cls, observation, action, config, complete.backend, complete.mode, complete.device, complete.seed)
    check_agent(cls, recipe)
    actor = recipe if complete.actor_backend is None else recipe.on(complete.actor_backend)
    return complete, recipe, actor


def spaces_of(env: Any, num_envs: int) -> tuple[Any, Any]:
    """Specs of one observation and one action.

    :raises ConfigError: for an unknown environment or a space that can't be tensors.
    """
    vector = make_vector(env, num_envs)
    try:
        return from_space(vector.single_observation_space), from_space(vector.single_action_space)
    except SpecError as e:
        raise ConfigError(f"environment {env}: {e}. Supported: {e.expected}") from e
    finally:
        if not isinstance(env, (gymnasium.Env, gymnasium.vector.VectorEnv)):
            vector.close()


def check_agent(cls: type[Agent], recipe: Recipe) -> None:
    """Make the root component and the graph builder once, so that a contradiction shows before the run starts."""
    from rlcore.plugins.manager import make_graph_builder

    recipe.root()
    builder = make_graph_builder(recipe.backend)
    builder.check("mode", recipe.mode, builder.capabilities.modes)
    builder.check("device", recipe.device, builder.capabilities.devices)


def validate(model: type[pydantic.BaseModel], values: Mapping[str, Any]) -> Any:
    """The model, or a ConfigError that names the key, what was given and what is allowed."""
    try:
        return model(**values)
    except pydantic.ValidationError as e:
        first = e.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "settings"
        if first["type"] == "extra_forbidden":
            names = list(model.model_fields)
            raise ConfigError(f"unknown setting '{key}'.{nearest(key, names)} Known: {', '.join(names)}") from e
        reason = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"setting '{key}': {reason[:1].lower() + reason[1:]}, got {first['input']!r}") from e


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``["learning_rate=1e-3", "hidden=[64, 64]"]`` to a dict. Values are Python or YAML literals.

    :raises ConfigError: for text without ``=``.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {pair}: write it as key=value, e.g. --set learning_rate=1e-3")
        try:
            settings[key.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            try:
                settings[key.strip()] = yaml.safe_load(text)
            except yaml.YAMLError as e:
                raise ConfigError(f"--set {pair}: '{text}' is neither a Python nor a YAML value") from e
    return settings
