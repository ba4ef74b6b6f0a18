"""Components by name: which names there are, and the classes that they stand for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from rlcore.errors import ConfigError, nearest


@dataclass(frozen=True)
class ComponentKind:
    """:ivar base: dotted path of the class that all of the kind derive from.
    :ivar given: arguments that whoever uses the component supplies, if its class takes them; options of the spec
        win over them.
    :ivar contract: how it is called."""

    base: str
    given: tuple[str, ...]
    contract: str


COMPONENT_KINDS = {
    "agent": ComponentKind("rlcore.agents.agent:Agent", (), "the root component, with a config_class and a workflow"),
    "network": ComponentKind(
        "rlcore.component:Component",
        ("observation", "hidden", "activation"),
        "features = network(observation): float32 [B, n]. With an argument `observation` (the specs of one) it gets"
        " observations as they are, else images as they are and all else flattened to float32 [B, n]",
    ),
    "layer": ComponentKind(
        "rlcore.component:Component", (), "y = layer(x): a part of a network; every network can be one"
    ),
    "policy": ComponentKind(
        "rlcore.component:Component", ("network", "num_actions"), "values = policy(observation): float32 [B, A]"
    ),
    "exploration": ComponentKind(
        "rlcore.component:Component", ("epsilon",), "actions = exploration(q_values, progress): int64 [B]"
    ),
    "optimizer": ComponentKind(
        "rlcore.components.optimizers:Optimizer",
        ("learning_rate", "max_grad_norm"),
        "loss, aux, norm = optimizer.minimize(loss_fn, parameters, progress)",
    ),
    "wrapper": ComponentKind("gymnasium:Wrapper", ("env",), "env = wrapper(env): around one Gymnasium environment"),
    "replay": ComponentKind(
        "builtins:object",
        ("capacity", "seed"),
        "replay.add(batch), replay.sample(batch_size), len(replay); on the host, NumPy trees",
    ),
}


class SpecProblem(ConfigError):
    """Something is wrong with a spec.

    :ivar path: keys from the setting down to what is wrong.
    """

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True)
class Registered:
    """:ivar path: ``module:Class``. ``provider``: distribution and version."""

    path: str
    provider: str
    example: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """An environment of a pack; Gymnasium is told of it under ``id``."""

    id: str
    path: str
    provider: str
    max_episode_steps: int | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)


class Registry:
    """Names of one session: kind and name -> dotted path. Nothing is imported before it is used."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, tuple[str, Registered]]] = {kind: {} for kind in COMPONENT_KINDS}
        self.environments: dict[str, Environment] = {}
        self._provider = "this program"

    @contextmanager
    def provided_by(self, provider: str) -> Iterator[None]:
        """What is added meanwhile comes from this distribution. A registration that fails leaves nothing behind."""
        before = self._provider, {k: dict(v) for k, v in self._found.items()}, dict(self.environments)
        self._provider = provider
        try:
            yield
        except BaseException:
            _, self._found, self.environments = before
            raise
        finally:
            self._provider = before[0]

    def add(self, kind: str, name: str, path: str, *, example: Mapping[str, Any] | None = None) -> None:
        """Register a class.

        :param kind: ``agent``, ``network``, ``layer``, ``policy``, ``exploration``, ``optimizer``,
            ``wrapper`` or ``replay``.
        :param path: ``module:Class``.
        :param example: options with which ``rlcore check-plugin`` builds it, where it can't do without.
        :raises ConfigError: for an unknown kind, a path of another form, or a name that is taken.
        """
        if kind not in COMPONENT_KINDS:
            raise ConfigError(f"no component kind '{kind}'.{nearest(kind, COMPONENT_KINDS)}{known(COMPONENT_KINDS)}")
        _check_path(path)
        self._taken(f"{kind} '{name}'", self._found[kind].get(_normal(name), (name, None))[1], path)
        self._found[kind][_normal(name)] = name, Registered(path, self._provider, dict(example or {}))

    def add_environment(self, id: str, path: str, *, max_episode_steps: int | None = None, **kwargs: Any) -> None:
        """Register an environment under a Gymnasium id (``my-pack/Corridor-v0``).

        :param path: ``module:Class``.
        :param kwargs: handed to the class.
        :raises ConfigError: for a path of another form, or an id that is taken.
        """
        _check_path(path)
        self._taken(f"environment '{id}'", self.environments.get(id), path)
        self.environments[id] = Environment(id, path, self._provider, max_episode_steps, kwargs)

    def _taken(self, what: str, other: Registered | Environment | None, path: str) -> None:
        if other is not None:
            raise ConfigError(
                f"{what} is registered twice: by {other.provider} ({other.path}) and {self._provider} ({path}); "
                "one of them must choose another name"
            )

    def names(self, kind: str) -> list[str]:
        return sorted(name for name, _ in self._found[kind].values())

    def everything(self, provider: str) -> list[Registered | Environment]:
        """All that one distribution registered."""
        components = [found for names in self._found.values() for _, found in names.values()]
        known: list[Registered | Environment] = [*components, *self.environments.values()]
        return [r for r in known if r.provider == provider]

    def get(self, kind: str, name: str) -> Registered | None:
        found = self._found[kind].get(_normal(name))
        return found[1] if found else None

    def class_of(self, kind: str, name: Any) -> type:
        """The class that a name, a dotted path or a class itself stands for.

        :raises SpecProblem: if it is unknown, can't be imported or is no component of that kind.
        """
        if isinstance(name, type):
            cls = name
        else:
            found = self.get(kind, str(name)) or (self.get("network", str(name)) if kind == "layer" else None)
            if found is None and not re.fullmatch(r"[\w.]+:\w+", str(name)):
                names = self.names(kind) + (self.names("network") if kind == "layer" else [])
                raise SpecProblem(f"unknown {kind} {name!r}.{nearest(str(name), names)}{known(names)}")
            cls = import_path(found.path if found else str(name), f" of {found.provider}" if found else "")
        base = import_path(COMPONENT_KINDS[kind].base, "")
        if not (inspect.isclass(cls) and issubclass(cls, base)):
            raise SpecProblem(f"{name!r} is no {kind}: it does not derive from {base.__module__}.{base.__qualname__}")
        return cls


@cache
def builtin_registry() -> Registry:
    """What comes with rlcore, for use without a session."""
    registry = Registry()
    with registry.provided_by("rlcore"):
        register_builtins(registry)
    return registry


def register_builtins(registry: Registry) -> None:
    registry.add("agent", "dqn", "rlcore.agents.dqn:DQN")
    networks = "rlcore.components.networks"
    registry.add("network", "sequential", f"{networks}:Sequential", example={"layers": [{"name": "dense", "units": 8}]})
    registry.add("network", "mlp", f"{networks}:MLP")
    registry.add("network", "nature_cnn", f"{networks}:NatureCNN")
    for name, place in {
        "dense": "layers:Dense",
        "conv2d": "layers:Conv2D",
        "max_pool2d": "layers:MaxPool2D",
        "flatten": "layers:Flatten",
        "layer_norm": "layers:LayerNorm",
        "one_hot": "layers:OneHot",
        "embedding": "layers:Embedding",
        "scale_image": "layers:ScaleImage",
    }.items():
        registry.add("layer", name, f"rlcore.components.{place}")
    registry.add("policy", "q_network", "rlcore.components.q_heads:QNetwork")
    registry.add("exploration", "epsilon_greedy", "rlcore.components.exploration:EpsilonGreedy")
    for name, cls in {"sgd": "SGD", "rmsprop": "RMSProp", "adam": "Adam", "adamw": "AdamW"}.items():
        registry.add("optimizer", name, f"rlcore.components.optimizers:{cls}")
    for name, path in {
        "atari": "rlcore.envs.atari:Atari",
        "clip_action": "gymnasium.wrappers:ClipAction",
        "clip_reward": "rlcore.envs.wrappers:ClipReward",
        "flatten_observation": "gymnasium.wrappers:FlattenObservation",
        "frame_stack": "rlcore.envs.wrappers:FrameStack",
        "one_hot_observation": "rlcore.envs.wrappers:OneHotObservation",
        "rescale_action": "rlcore.envs.wrappers:RescaleAction",
        "time_aware": "gymnasium.wrappers:TimeAwareObservation",
    }.items():
        registry.add("wrapper", name, path)
    registry.add("replay", "uniform", "rlcore.memories.replay:UniformReplay")


def import_path(path: str, whose: str = "") -> Any:
    """What ``module:Class`` names.

    :param whose: for the error: `` of DISTRIBUTION``.
    :raises SpecProblem: if it can't be imported.
    """
    module, _, attribute = path.partition(":")
    try:
        found = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as e:
        raise SpecProblem(f"'{path}'{whose} can't be imported: {type(e).__name__}: {e}") from e
    return found


def known(names: Any) -> str:
    """`` Known: a, b`` for an error."""
    return f" Known: {', '.join(names)}" if names else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_]", "", name).lower()


def _check_path(path: str) -> None:
    if not re.fullmatch(r"[\w.]+:[\w.]+", str(path)):
        raise ConfigError(f"{path!r} is no dotted path: write 'package.module:Class', so that it is imported when used")
