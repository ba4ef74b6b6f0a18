"""RunConfig: every setting of a run, checked before anything starts."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import pydantic
import yaml
from pydantic import Field, NonNegativeInt, PositiveInt

from rlcore.agents.agent import Agent, AgentConfig
from rlcore.agents.presets import Preset, preset
from rlcore.component_specs import FILES, SpecOf, read_file, read_spec
from rlcore.envs.vector import make_vector
from rlcore.envs.wrapped import wrapped
from rlcore.errors import ConfigError, SpecError, nearest
from rlcore.plugins.session import Session
from rlcore.registry import SpecProblem
from rlcore.specs import from_space
from rlcore.workflows.recipe import Recipe

ENVIRONMENT = {"backend": "RLCORE_BACKEND", "actor_backend": "RLCORE_ACTOR_BACKEND", "executor": "RLCORE_EXECUTOR"}
"""Environment variables that set a field where nothing else does."""


class RunConfig(pydantic.BaseModel):
    """Complete: with it, :func:`rlcore.train` repeats the run."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    agent: str = Field(description="name of the agent, or its dotted path")
    env: Any = Field(description="Gymnasium id; in code also a function that makes a (vector) environment")
    backend: Any = Field("torch", description="graph backend of the learner")
    mode: str | None = Field(None, description="eager or static; the backend's default if not set")
    device: str | None = Field(None, description="the backend's default if not set")
    actor_backend: Any = Field(None, description="graph backend of the sampler; the learner's if not set")
    executor: Any = Field("local", description="where roles run: a name, or a mapping of a name and options")
    env_options: dict[str, Any] = Field(default_factory=dict, description="keyword arguments of gymnasium.make")
    wrappers: list[Annotated[Any, SpecOf("wrapper")]] = Field(
        default_factory=list, description="around each environment, the first innermost"
    )
    evaluation_wrappers: list[Annotated[Any, SpecOf("wrapper")]] | None = Field(
        None, description="in evaluation, in place of `wrappers`; the same if not set"
    )
    num_envs: PositiveInt = Field(1, description="environments stepped together")
    steps: PositiveInt = Field(100_000, description="env steps, over all envs")
    seed: NonNegativeInt = Field(0, description="of everything random in the run")
    evaluation_episodes: PositiveInt = Field(100, description="greedy episodes before and after training")
    hooks: Any = Field(None, description="hook plugins by name; all that are installed if not set")
    on_hook_error: str | None = Field(None, description="of an observer: raise, warn or disable; raise if not set")
    config: dict[str, Any] = Field(default_factory=dict, description="settings of the agent")

    @property
    def training_env(self) -> Any:
        """What the sampler steps: the environment, or a function that makes it with its options and wrappers."""
        return wrapped(self.env, self.env_options, self.wrappers)

    @property
    def evaluation_env(self) -> Any:
        wrappers = self.wrappers if self.evaluation_wrappers is None else self.evaluation_wrappers
        return wrapped(self.env, self.env_options, wrappers)


def resolve(agent: Any, env: Any, settings: Mapping[str, Any], **run: Any) -> tuple[RunConfig, Recipe, Recipe]:
    """Defaults, then the preset of the environment, then what was given; checked.

    :param agent: a name, a class, a mapping of a name and settings, or a JSON or YAML file that holds one.
    :param settings: of the agent, over those; ``a.b`` is b within a, ``executor.NAME`` an option of the executor.
        Nothing of the caller's is changed.
    :param run: fields of RunConfig; None means not given.
    :return: the complete config, the learner's recipe and the sampler's.
    :raises ConfigError: one line: what is wrong and the nearest right name.
    """
    given = {k: v for k, v in run.items() if v is not None}
    given |= {k: os.environ[v] for k, v in ENVIRONMENT.items() if k not in given and os.environ.get(v)}
    if isinstance(given.get("hooks"), str):
        given["hooks"] = [given["hooks"]]
    session = Session(given.get("hooks"), on_hook_error=given.get("on_hook_error"))
    name, cls, own = agent_of(agent, session)
    own = merged(own, nested(settings))
    given["executor"] = executor_of(given.get("executor", "local"), own.pop("executor", {}))
    session.check_executor(name_and_options(given["executor"])[0])
    known = preset(name, env) if isinstance(env, str) else Preset()
    defaults = {k: f.default for k, f in cls.config_class.model_fields.items()}
    own = merged(known.settings, own, defaults)
    config: AgentConfig = validate(cls.config_class, own, {"registry": session.registry})
    fields = {**known.run, **given, "agent": name, "env": env}
    context = {"registry": session.registry}
    complete: RunConfig = validate(RunConfig, {**fields, "config": config.model_dump()}, context)
    observation, action = spaces_of(complete.training_env, complete.num_envs)
    recipe = Recipe(
        cls, observation, action, config, complete.backend, complete.mode, complete.device, complete.seed, session
    )
    check_agent(recipe)
    if complete.actor_backend is None:
        return complete, recipe, recipe
    session.graph_builder(complete.actor_backend)
    return complete, recipe, recipe.on(complete.actor_backend)


def agent_of(agent: Any, session: Session) -> tuple[str, type[Agent], dict[str, Any]]:
    """Name, class and settings that an agent's spec stands for."""
    try:
        spec = read_spec(agent)
        settings = dict(spec) if isinstance(spec, Mapping) else {}
        name = settings.pop("name", None) if isinstance(spec, Mapping) else spec
        if name is None:
            raise SpecProblem(f"an agent needs a 'name'. Known: {', '.join(session.registry.names('agent'))}")
        cls = session.registry.class_of("agent", name)
    except SpecProblem as e:
        raise ConfigError(str(e)) from e
    return (name if isinstance(name, str) else f"{cls.__module__}:{cls.__qualname__}"), cls, settings


def executor_of(executor: Any, options: Mapping[str, Any]) -> Any:
    """A name, a mapping of a name and options, or an object, with the options of ``--set executor.NAME``."""
    if not isinstance(executor, (str, Mapping)):
        return executor
    if not isinstance(options, Mapping):
        raise ConfigError(f"setting 'executor': options are a mapping, got {options!r}")
    spec = {"name": executor} if isinstance(executor, str) else dict(executor)
    if not isinstance(spec.get("name"), str):
        raise ConfigError("setting 'executor': a mapping needs a 'name'")
    spec |= options
    return spec["name"] if len(spec) == 1 else spec


def name_and_options(executor: Any) -> tuple[Any, dict[str, Any]]:
    """Of what :func:`executor_of` gives."""
    if not isinstance(executor, Mapping):
        return executor, {}
    return executor["name"], {k: v for k, v in executor.items() if k != "name"}


def load_config(path: str | Path) -> dict[str, Any]:
    """The settings in a JSON or YAML file, as arguments of :func:`rlcore.train`; ``config.yaml`` of a run is one.

    :raises ConfigError: if it can't be read, or holds an unknown setting.
    """
    content = read_file(path)
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path}: expected settings by name, got {type(content).__name__}")
    names = list(RunConfig.model_fields)
    for key in content:
        if key not in names:
            raise ConfigError(f"{path}: unknown setting '{key}'.{nearest(str(key), names)} Known: {', '.join(names)}")
    if not isinstance(content.get("config") or {}, Mapping):
        raise ConfigError(f"{path}: setting 'config' holds the agent's settings by name, got {content['config']!r}")
    return dict(content)


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """``{"a.b": 1}`` to ``{"a": {"b": 1}}``; a copy."""
    out: dict[str, Any] = {}
    for key, value in settings.items():
        first, _, rest = key.partition(".")
        value = nested({rest: value}) if rest else value
        out = merged(out, {first: value})
    return out


def merged(
    base: Mapping[str, Any], over: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """``over`` on top of ``base``. A mapping that names nothing adds options to what is there: a name or a mapping."""
    out = dict(base)
    for key, value in over.items():
        below = out.get(key, (defaults or {}).get(key))
        if isinstance(value, Mapping) and "name" not in value:
            below = {"name": below} if isinstance(below, str) and not below.endswith(FILES) else below
            value = merged(below, value) if isinstance(below, Mapping) else dict(value)
        out[key] = value
    return out


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


def check_agent(recipe: Recipe) -> None:
    """Make the root component and the graph builder once, so that a contradiction shows before the run starts."""
    recipe.root()
    builder = recipe.session.graph_builder(recipe.backend)
    builder.check("mode", recipe.mode, builder.capabilities.modes)
    builder.check("device", recipe.device, builder.capabilities.devices)


def validate(
    model: type[pydantic.BaseModel], values: Mapping[str, Any], context: Mapping[str, Any] | None = None
) -> Any:
    """The model, or a ConfigError that names the dotted path, what was given and what is allowed."""
    try:
        return model.model_validate(dict(values), context=context)
    except pydantic.ValidationError as e:
        first = e.errors()[0]
        problem = first.get("ctx", {}).get("error")
        path = [*first["loc"], *(problem.path if isinstance(problem, SpecProblem) else ())]
        key = ".".join(str(part) for part in path) or "settings"
        if first["type"] == "extra_forbidden":
            names = list(model.model_fields)
            raise ConfigError(f"unknown setting '{key}'.{nearest(key, names)} Known: {', '.join(names)}") from e
        reason = first["msg"].removeprefix("Value error, ")
        got = "" if isinstance(problem, SpecProblem) else f", got {first['input']!r}"
        raise ConfigError(f"setting '{key}': {reason[:1].lower() + reason[1:]}{got}") from e


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``["learning_rate=1e-3", "network.hidden=[64, 64]"]`` to a dict. Values are Python or YAML literals.

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
