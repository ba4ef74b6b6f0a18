"""What every component pack must do: each name that it registers builds, on every installed backend, and works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlcore.agents.agent import Agent
from rlcore.assembly import assemble
from rlcore.component import Array, Component, Parameters, api
from rlcore.component_specs import ComponentSpec, check_spec
from rlcore.components.networks import MLP, network_for
from rlcore.errors import RLCoreError
from rlcore.plugins.discovery import COMPONENTS, GRAPH_BUILDER, scan
from rlcore.registry import COMPONENT_KINDS, Registered
from rlcore.specs import TensorSpec, sample, with_axes
from rlcore.testing.checks import Subject, check
from rlcore.testing.component_test import ComponentTest

VECTOR = TensorSpec((4,), "float32", -2.0, 2.0)
IMAGE = TensorSpec((36, 36, 2), "uint8", 0, 255)
Q_VALUES = {"q_values": TensorSpec(("B", 3)), "progress": TensorSpec((), "float32", 0.0, 1.0)}


def registered(subject: Subject, kind: str) -> dict[str, tuple[Registered, ComponentSpec | None]]:
    """What the pack registered of a kind, by name, with the spec of its example."""
    session = subject.session
    key = f"{COMPONENTS.name} {subject.found.qualified}"
    if key not in session.plugins:
        session.add(subject.found)
    out: dict[str, tuple[Registered, ComponentSpec | None]] = {}
    for name in session.registry.names(kind):
        found = session.registry.get(kind, name)
        if found is not None and found.provider == subject.found.label:
            spec = (
                None
                if kind in ("agent", "layer")
                else check_spec(kind, {"name": name, **found.example}, session.registry)
            )
            out[name] = found, spec
    return out


def backends() -> list[str]:
    """Names of the graph builders that are installed and can be used."""
    return [f.qualified for f in scan(GRAPH_BUILDER) if not f.switched_off and f.problem() is None]


def agree(make: Any, inputs: Mapping[str, Any], what: str) -> None:
    """A component gives the same numbers on every backend as on NumPy."""
    for backend in backends():
        try:
            ComponentTest(make(), inputs, backend=backend).check_against_numpy()
        except Exception as e:
            raise AssertionError(f"{what} on backend '{backend}': {type(e).__name__}: {e}") from e


@check("components/import", COMPONENTS)
def imports(subject: Subject) -> None:
    count = 0
    for kind in COMPONENT_KINDS:
        for name in registered(subject, kind):
            subject.session.registry.class_of(kind, name)
            count += 1
    environments = [e for e in subject.session.registry.environments.values() if e.provider == subject.found.label]
    assert count or environments, "the pack registers nothing"


@check("components/networks", COMPONENTS)
def networks(subject: Subject) -> None:
    for name, (_, spec) in registered(subject, "network").items():
        errors = []
        for observation in (VECTOR, IMAGE):

            def make(observation: TensorSpec = observation, spec: Any = spec) -> Component:
                return network_for(observation, spec, hidden=(8, 8), activation="relu")

            inputs = {"observation": with_axes(observation, "B")}
            first = "x" if "x" in _arguments(make()) else "observation"
            inputs = {first: inputs["observation"]}
            try:
                graph = assemble(make(), {"__call__": inputs})
            except RLCoreError as e:
                errors.append(f"{observation}: {e}")
                continue
            output = graph.apis["__call__"].outputs
            assert isinstance(output, TensorSpec) and output.rank == 2 and output.dtype == "float32", (
                f"network '{name}' gives {output}, expected float32[B, n]"
            )
            agree(make, inputs, f"network '{name}'")
            break
        else:
            raise AssertionError(f"network '{name}' takes neither a vector nor an image:\n" + "\n".join(errors))


@check("components/policies", COMPONENTS)
def policies(subject: Subject) -> None:
    for name, (_, spec) in registered(subject, "policy").items():
        assert spec is not None

        def make(spec: ComponentSpec = spec) -> Any:
            return spec.build(network=MLP((8,)), num_actions=3)

        first = next(iter(_arguments(make())))
        inputs = {first: with_axes(VECTOR, "B")}
        output = assemble(make(), {"__call__": inputs}).apis["__call__"].outputs
        assert output == TensorSpec(("B", 3)), f"policy '{name}' gives {output}, expected float32[B, 3]"
        agree(make, inputs, f"policy '{name}'")


@check("components/explorations", COMPONENTS)
def explorations(subject: Subject) -> None:
    for name, (_, spec) in registered(subject, "exploration").items():
        assert spec is not None

        def make(spec: ComponentSpec = spec) -> Any:
            return spec.build(epsilon=[1.0, 0.1])

        test = ComponentTest(make(), Q_VALUES)
        values = np.random.default_rng(0).standard_normal((500, 3)).astype(np.float32)
        for progress in (0.0, 0.5, 1.0):
            actions = test.call(values, np.array(progress, np.float32))
            assert actions.dtype == np.int64 and actions.shape == (500,), f"exploration '{name}': {actions.dtype}"
            assert set(actions) <= {0, 1, 2}, f"exploration '{name}' gives actions {sorted(set(actions))} of 3"
        agree(make, Q_VALUES, f"exploration '{name}'")


class _Regression(Component):
    """One gradient step on y = x W."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__()
        self.model = MLP((3,), activation="linear")
        self.parameters, self.optimizer = Parameters(self.model), optimizer

    @api
    def update(self, x: Array, y: Array, progress: Array) -> Array:
        def loss_fn() -> tuple[Array, Any]:
            return self.ops.mean(self.ops.square(self.model(x) - y)), {}

        loss, _, _ = self.optimizer.minimize(loss_fn, self.parameters, progress)
        return loss


@check("components/optimizers", COMPONENTS)
def optimizers(subject: Subject) -> None:
    progress = TensorSpec((), "float32", 0.0, 1.0)
    inputs = {
        "update": {"x": with_axes(VECTOR, "B"), "y": TensorSpec(("B", 3), "float32", -1.0, 1.0), "progress": progress}
    }
    for name, (_, spec) in registered(subject, "optimizer").items():
        assert spec is not None
        losses = {}
        for backend in backends():
            root = _Regression(spec.build(learning_rate=1e-2, max_grad_norm=1.0))
            test = ComponentTest(root, inputs, backend=backend)
            batch: Any = sample(tuple(inputs["update"].values()), np.random.default_rng(0), {"B": 16})
            losses[backend] = [float(test.call(*batch, api="update")) for _ in range(10)]
            assert losses[backend][-1] < losses[backend][0], f"optimizer '{name}' on '{backend}': losses {losses}"
        first = next(iter(losses.values()))
        for backend, other in losses.items():
            np.testing.assert_allclose(other, first, rtol=1e-3, err_msg=f"optimizer '{name}' on '{backend}'")


@check("components/replays", COMPONENTS)
def replays(subject: Subject) -> None:
    for name, (_, spec) in registered(subject, "replay").items():
        assert spec is not None
        one, two = (spec.build(capacity=8, seed=3) for _ in range(2))
        for memory in (one, two):
            assert len(memory) == 0, f"replay '{name}': a new one has {len(memory)} transitions"
            for i in range(5):
                memory.add({"x": np.full((3, 2), i, np.float32), "i": np.arange(3) + 3 * i})
        assert len(one) == 8, f"replay '{name}' of capacity 8 holds {len(one)} of 15"
        batch = one.sample(64)
        assert batch["x"].shape == (64, 2) and set(batch["i"]) <= set(range(7, 15)), f"replay '{name}' keeps the newest"
        assert np.array_equal(two.sample(64)["i"], batch["i"]), f"replay '{name}': one seed, two samples"


@check("components/agents", COMPONENTS)
def agents(subject: Subject) -> None:
    """Each agent assembles, acts and updates in CartPole with its defaults, on NumPy."""
    from rlcore.runs.config import resolve

    for name in registered(subject, "agent"):
        _, recipe, _ = resolve(name, "CartPole-v1", {}, backend="numpy", hooks=[])
        root: Agent = recipe.root()
        executable = recipe.build()
        rng = np.random.default_rng(0)
        for one, specs in root.api_inputs().items():
            executable(one, *sample(tuple(specs.values()), rng, {"B": 8, "T": 4}))


@check("components/environments", COMPONENTS)
def environments(subject: Subject) -> None:
    import gymnasium

    registered(subject, "agent")  # registers the pack where it is not yet
    subject.session.tell_gymnasium()
    for env in subject.session.registry.environments.values():
        if env.provider != subject.found.label:
            continue
        made = gymnasium.make(env.id)
        seeds = [made.reset(seed=7)[0] for _ in range(2)]
        assert made.observation_space.contains(seeds[0]), f"{env.id}: the first observation is not of its space"
        assert np.array_equal(np.asarray(seeds[0]), np.asarray(seeds[1])), f"{env.id}: one seed, two starts"
        made.action_space.seed(0)
        for _ in range(200):
            observation, reward, terminated, truncated, _ = made.step(made.action_space.sample())
            assert made.observation_space.contains(observation), f"{env.id}: observation {observation!r}"
            assert np.isfinite(float(reward)), f"{env.id}: reward {reward}"
            if terminated or truncated:
                made.reset()
        made.close()


def _arguments(component: Component) -> list[str]:
    from rlcore.component import apis_of

    return apis_of(type(component))["__call__"].inputs
