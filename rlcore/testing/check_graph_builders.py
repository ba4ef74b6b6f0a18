"""What every graph builder must do: give NumPy's numbers, in every mode, and refuse what it does not declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import optree

from rlcore.assembly import assemble
from rlcore.backend import Executable, GraphBuilder, Weights, WeightsError
from rlcore.backends.numpy.builder import NumpyGraphBuilder
from rlcore.component import Array, Component, Normal, Parameters, Uniform, api, frozen_copy
from rlcore.component_specs import from_spec
from rlcore.components.networks import MLP
from rlcore.errors import SpecError, UnsupportedCapability
from rlcore.layout import Entry
from rlcore.plugins.discovery import GRAPH_BUILDER
from rlcore.specs import TensorSpec
from rlcore.testing.checks import Subject, check
from rlcore.testing.op_cases import DIFFERENTIABLE, Gradients, OpCases, edge_inputs

SCALAR = TensorSpec((), "float32", 0.0, 1.0)
OBSERVATION = TensorSpec(("B", 4), "float32", -2.0, 2.0)
OPTIMIZERS = [
    {"name": "sgd", "learning_rate": 0.1},
    {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "max_grad_norm": 0.5},
    {"name": "rmsprop", "learning_rate": 0.01, "centered": True, "momentum": 0.5},
    {"name": "adam", "learning_rate": [0.01, 0.001], "max_grad_norm": 0.5},
    {"name": "adamw", "learning_rate": 0.01, "weight_decay": 0.1},
]


class Small(Component):
    """A network with a target, noise and an update: what a build can hold, as small as it can be."""

    INPUTS: Mapping[str, Mapping[str, Any]] = {
        "values": {"x": OBSERVATION},
        "tree": {"batch": {"x": OBSERVATION, "pair": (OBSERVATION, TensorSpec(("B",), "int64", 0, 3))}},
        "noisy": {"x": OBSERVATION},
        "update": {"x": OBSERVATION, "y": TensorSpec(("B", 3)), "progress": SCALAR},
        "sync": {},
    }
    ACTING = ("values", "tree", "noisy")

    def __init__(self, optimizer: Any = None) -> None:
        super().__init__()
        self.online = MLP((8, 3), activation="tanh")
        self.target = frozen_copy(self.online)
        self.parameters, self.copied = Parameters(self.online), Parameters(self.target)
        self.optimizer = from_spec("optimizer", optimizer or OPTIMIZERS[1])

    @api
    def values(self, x: Array) -> Array:
        return self.online(x)

    @api
    def tree(self, batch: Any) -> Any:
        first, index = batch["pair"]
        return {"sum": batch["x"] + first, "parts": (self.online(batch["x"]), self.ops.one_hot(index, 4))}

    @api(noise={"u": Uniform("B"), "n": Normal("B", 4)})
    def noisy(self, x: Array, *, u: Array, n: Array) -> Array:
        return self.online(x + n) + self.ops.expand_dims(u, -1)

    @api
    def update(self, x: Array, y: Array, progress: Array) -> Array:
        def loss_fn() -> tuple[Array, Any]:
            return self.ops.mean(self.ops.square(self.online(x) - y + 0.1 * self.target(x))), {}

        loss, _, norm = self.optimizer.minimize(loss_fn, self.parameters, progress)
        return {"loss": loss, "norm": norm}

    @api
    def sync(self) -> None:
        self.ops.assign(self.copied.flat, self.parameters.flat)


def builder_of(subject: Subject) -> GraphBuilder:
    made = subject.shared.get("builder") or subject.session.graph_builder(subject.name)
    assert isinstance(made, GraphBuilder)
    return made


def both(
    subject: Subject, component: Component, inputs: Mapping[str, Any], *, seed: int = 3
) -> Iterator[tuple[str, Executable, Executable]]:
    """(mode, the subject's build, NumPy's build) for every mode that the subject declares."""
    builder, graph = builder_of(subject), assemble(component, inputs)
    for mode in builder.capabilities.modes:
        yield mode, builder.build(graph, mode=mode, seed=seed), NumpyGraphBuilder().build(graph, seed=seed)


def small(subject: Subject) -> Mapping[str, Mapping[str, Any]]:
    """Apis of :class:`Small` that the subject can build."""
    learns = builder_of(subject).capabilities.gradients
    return {a: i for a, i in Small.INPUTS.items() if learns or a in Small.ACTING}


def close(given: Any, expected: Any, what: str, tolerance: float = 1e-5) -> None:
    """Same structure, shapes and dtypes; values to a share of the largest one."""
    a, structure = optree.tree_flatten(given)
    b, expected_structure = optree.tree_flatten(expected)
    assert structure == expected_structure, f"{what}: gave {structure}, expected {expected_structure}"
    for x, y in zip(map(np.asarray, a), map(np.asarray, b), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), f"{what}: {x.dtype}{x.shape}, expected {y.dtype}{y.shape}"
        finite = np.isfinite(y)
        assert np.array_equal(finite, np.isfinite(x)), f"{what}: infinite or NaN in other places than NumPy"
        scale = max(float(np.abs(y[finite]).max(initial=0.0)), 1e-2)
        gap = float(np.abs(x[finite].astype(float) - y[finite].astype(float)).max(initial=0.0))
        assert gap <= tolerance * scale, f"{what}: differs by {gap:.2g}, the largest value is {scale:.2g}"


def raises(kind: type[BaseException], call: Any, what: str) -> BaseException:
    try:
        call()
    except kind as e:
        return e
    except Exception as e:
        raise AssertionError(f"{what}: expected {kind.__name__}, got {type(e).__name__}: {e}") from e
    raise AssertionError(f"{what}: expected {kind.__name__}, but nothing was raised")


def batch(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((size, 4), np.float32), rng.standard_normal((size, 3), np.float32)


# -- ops -----------------------------------------------------------------------------------------------------------
def _ops(subject: Subject, group: str) -> None:
    inputs = {group: OpCases.INPUTS[group]}
    for mode, ours, reference in both(subject, OpCases(), inputs):
        for size in (6, 1, 2):
            arguments = edge_inputs(group, np.random.default_rng(size), size)
            given, expected = ours(group, *arguments), reference(group, *arguments)
            assert set(given) == set(expected), f"{mode}: {group} gave {sorted(given)}"
            for name in expected:
                close(given[name], expected[name], f"{name} ({mode}, batch {size})")
        close(ours.get_state(), reference.get_state(), f"variables after {group} ({mode})")


for _group in OpCases.INPUTS:
    check(f"ops/{_group}", GRAPH_BUILDER)(partial(_ops, group=_group))


# -- gradients -----------------------------------------------------------------------------------------------------
@check("gradients/each-op", GRAPH_BUILDER, of="gradients")
def each_op(subject: Subject) -> None:
    zero = {"gradient": {"zero": SCALAR}}
    value = np.zeros((), np.float32)
    for mode in builder_of(subject).capabilities.modes:
        # Where each graph is compiled, all ops share one; an error is then looked for one by one.
        together = [list(DIFFERENTIABLE)] if mode == "static" else [[name] for name in DIFFERENTIABLE]
        for names in together:
            graph = assemble(Gradients(names), zero)
            ours = builder_of(subject).build(graph, mode=mode, seed=1)("gradient", value)
            expected = NumpyGraphBuilder().build(graph, seed=1)("gradient", value)
            what = names[0] if len(names) == 1 else "all ops at once"
            close(ours, expected, f"gradient of {what} ({mode})")
            unused = graph.num_parameters - 3
            assert graph.variables[-1].path.endswith("unused")
            assert not ours["gradient"][unused:].any(), f"gradient of an unused variable ({mode})"
            np.testing.assert_allclose(ours["twice"], 2 * ours["loss"], rtol=1e-5, err_msg="aux")


@check("gradients/refused", GRAPH_BUILDER, without="gradients")
def gradients_refused(subject: Subject) -> None:
    builder = builder_of(subject)
    graph = assemble(Small(), Small.INPUTS)
    error = raises(UnsupportedCapability, lambda: builder.build(graph), "a build with an update")
    assert "gradients" in str(error) and "update" in str(error), error
    acting = assemble(Small(), {"values": Small.INPUTS["values"]})
    builder.build(acting)("values", np.zeros((2, 4), np.float32))


@check("optimizers/all", GRAPH_BUILDER, of="gradients")
def optimizers(subject: Subject) -> None:
    for spec in OPTIMIZERS:
        inputs = {"update": Small.INPUTS["update"]}
        for mode, ours, reference in both(subject, Small(spec), inputs):
            rng = np.random.default_rng(0)
            for step in range(5):
                x, y = batch(rng, 16)
                progress = np.array(step / 5, np.float32)
                what = f"{spec['name']}, step {step + 1} ({mode})"
                close(ours("update", x, y, progress), reference("update", x, y, progress), what, 1e-4)
                # Adam turns the rounding of gradients near zero into whole steps: later ones are compared loosely.
                close(ours.get_state(), reference.get_state(), what, 1e-5 if step == 0 else 1e-3)


# -- modes ---------------------------------------------------------------------------------------------------------
@check("modes/as-declared", GRAPH_BUILDER)
def as_declared(subject: Subject) -> None:
    builder = builder_of(subject)
    declared, can = subject.capabilities(), builder.capabilities
    assert can.names == declared, f"the plugin's info declares {sorted(declared)}, the builder has {sorted(can.names)}"
    assert can.modes and set(can.modes) <= {"eager", "static"} and can.devices, can
    assert builder.name == subject.found.name, f"its name is '{builder.name}', the plugin's '{subject.found.name}'"


@check("modes/others-refused", GRAPH_BUILDER)
def others_refused(subject: Subject) -> None:
    builder = builder_of(subject)
    graph = assemble(Small(), {"values": Small.INPUTS["values"]})
    for mode in {"eager", "static", "no-such-mode"} - set(builder.capabilities.modes):
        error = raises(UnsupportedCapability, partial(builder.build, graph, mode=mode), f"mode '{mode}'")
        assert builder.capabilities.modes[0] in str(error), f"the error does not say which modes there are: {error}"
    error = raises(UnsupportedCapability, partial(builder.build, graph, device="no-such-device"), "a device")
    assert builder.capabilities.devices[0] in str(error), f"the error does not say which devices there are: {error}"


@check("modes/one-graph-an-api", GRAPH_BUILDER, of="static")
def one_graph(subject: Subject) -> None:
    """Whatever the batch, an api is captured once."""
    inputs = small(subject)
    executable = builder_of(subject).build(assemble(Small(), inputs), mode="static", seed=0)
    rng = np.random.default_rng(0)
    for size in (8, 1, 2, 3, 64, 17, 1):
        x, y = batch(rng, size)
        executable("values", x)
        executable("noisy", x)
        if "update" in inputs:
            executable("update", x, y, np.array(0.5, np.float32))
            executable("sync")
    counts = {name: executable.trace_count[name] for name in inputs if name != "tree"}
    assert set(counts.values()) == {1}, f"graphs captured: {counts}"


@check("modes/eager-captures-nothing", GRAPH_BUILDER, of="eager")
def eager_captures_nothing(subject: Subject) -> None:
    graph = assemble(Small(), {"values": Small.INPUTS["values"]})
    executable = builder_of(subject).build(graph, mode="eager")
    executable("values", np.zeros((2, 4), np.float32))
    assert set(executable.trace_count.values()) == {0}, f"graphs captured in eager mode: {executable.trace_count}"
    assert executable.mode == "eager", executable.mode


# -- weights -------------------------------------------------------------------------------------------------------
@check("weights/round-trip", GRAPH_BUILDER)
def round_trip(subject: Subject) -> None:
    inputs = small(subject)
    for mode, ours, reference in both(subject, Small(), inputs, seed=1):
        rng = np.random.default_rng(0)
        x, _ = batch(rng, 32)
        _, other = reference.get_weights(), reference.get_weights()
        assert other.version == 2
        changed = Weights(rng.standard_normal(other.buffer.shape).astype(np.float32) * 0.3, other.manifest, 9)
        ours.set_weights(changed)
        mine = ours.get_weights()
        assert mine.manifest == changed.manifest, f"{mode}: manifest {mine.manifest}, NumPy's {changed.manifest}"
        assert np.array_equal(mine.buffer, changed.buffer) and mine.buffer.dtype == np.float32, mode
        again = ours.get_weights().version
        assert (mine.version, again) == (10, 11), f"{mode}: after version 9 came {mine.version} and {again}"
        reference.set_weights(mine)
        close(ours("values", x), reference("values", x), f"values with NumPy's weights ({mode})")
        kept = mine.buffer.copy()
        ours.set_weights(other)
        assert np.array_equal(mine.buffer, kept), f"{mode}: what get_weights gave is no copy"


@check("weights/state", GRAPH_BUILDER, of="gradients")
def state(subject: Subject) -> None:
    """Everything moves to NumPy and back: trained, frozen, moments."""
    for mode, ours, reference in both(subject, Small(OPTIMIZERS[3]), small(subject)):
        rng = np.random.default_rng(0)
        x, y = batch(rng, 16)
        progress = np.array(0.0, np.float32)
        ours("update", x, y, progress)
        before = ours.get_state()
        reference.set_state(before)
        theirs = reference.get_state()
        assert list(before) == list(theirs) or set(before) == set(theirs), f"{mode}: {sorted(before)}"
        assert any("moment" in path for path in before) and any(path.startswith("target") for path in before)
        for one in (ours, reference):
            one("update", x, y, progress)
        close(ours.get_state(), reference.get_state(), f"state after an update ({mode})")
        ours.set_state(before)
        close(ours.get_state(), before, f"state set back ({mode})", 0.0)
        ours("sync")
        assert np.array_equal(ours.get_state()["target.layers.0.kernel"], before["online.layers.0.kernel"]), mode


@check("weights/refused", GRAPH_BUILDER)
def weights_refused(subject: Subject) -> None:
    for mode, ours, _ in both(subject, Small(), {"values": Small.INPUTS["values"]}):
        before = ours.get_weights()
        first, *rest = before.manifest
        wrong_name = Weights(before.buffer, (Entry("typo", first.shape, first.offset), *rest))
        wrong_shape = Weights(before.buffer, (Entry(first.path, (first.size, 1), first.offset), *rest))
        for weights in (wrong_name, wrong_shape):
            error = raises(WeightsError, partial(ours.set_weights, weights), "weights that don't fit")
            assert first.path in str(error), f"{mode}: the error does not name the variable: {error}"
        state = ours.get_state()
        state["typo"] = state.pop(first.path)
        raises(WeightsError, partial(ours.set_state, state), "a state that does not fit")
        assert np.array_equal(ours.get_weights().buffer, before.buffer), f"{mode}: refused weights changed something"


# -- builds --------------------------------------------------------------------------------------------------------
@check("builds/same-seed", GRAPH_BUILDER)
def same_seed(subject: Subject) -> None:
    for mode, ours, reference in both(subject, Small(), small(subject), seed=11):
        mine, theirs = ours.get_weights().buffer, reference.get_weights().buffer
        assert np.array_equal(mine, theirs), f"{mode}: one seed, other initial weights than NumPy"
        x, _ = batch(np.random.default_rng(0), 16)
        for _ in range(3):
            close(ours("noisy", x), reference("noisy", x), f"noise of one seed ({mode})")
        other = builder_of(subject).build(ours.graph, mode=mode, seed=12)
        assert not np.array_equal(other.get_weights().buffer, mine), f"{mode}: another seed, the same weights"


@check("builds/side-by-side", GRAPH_BUILDER)
def side_by_side(subject: Subject) -> None:
    """Two builds of one graph share nothing, and neither do those of two builders."""
    inputs = small(subject)
    for mode, one, _ in both(subject, Small(), inputs):
        two = builder_of(subject).build(one.graph, mode=mode, seed=3)
        x, y = batch(np.random.default_rng(0), 8)
        before, values = two.get_state(), two("values", x)
        if "update" in inputs:
            one("update", x, y, np.array(0.0, np.float32))
        else:
            one.set_weights(Weights(one.get_weights().buffer + 1, one.get_weights().manifest))
        close(two.get_state(), before, f"variables of another build ({mode})", 0.0)
        close(two("values", x), values, f"values of another build ({mode})", 0.0)
        assert not np.array_equal(one("values", x), values), f"{mode}: the update changed nothing"


@check("builds/frozen-target", GRAPH_BUILDER, of="gradients")
def frozen_target(subject: Subject) -> None:
    for mode, ours, _ in both(subject, Small(), small(subject)):
        x, y = batch(np.random.default_rng(0), 8)
        start = ours.get_state()
        ours("update", x, y, np.array(0.0, np.float32))
        after = ours.get_state()
        for path in start:
            if path.startswith("target"):
                assert np.array_equal(start[path], after[path]), f"{mode}: training changed the frozen '{path}'"
        names = [e.path for e in ours.get_weights().manifest]
        assert not [n for n in names if n.startswith("target")], f"{mode}: the frozen copy is among the weights"


@check("builds/inputs", GRAPH_BUILDER)
def inputs_checked(subject: Subject) -> None:
    apis = {"values": Small.INPUTS["values"], "tree": Small.INPUTS["tree"]}
    for mode, ours, reference in both(subject, Small(), apis):
        x, _ = batch(np.random.default_rng(0), 6)
        error = raises(SpecError, partial(ours, "values", x[:, :3]), "an input of another shape")
        assert "x" in str(error) and "float32[B, 4]" in str(error), f"{mode}: {error}"
        raises(SpecError, partial(ours, "values", x.astype(np.complex64)), "an input of another dtype")
        for given in (x.astype(np.float64), x[::-1], x.T.copy().T, np.repeat(x, 2, 1)[:, ::2]):
            close(ours("values", given), reference("values", given), f"a cast or strided input ({mode})")
        data = {"x": x, "pair": (x[::-1], np.arange(6) % 4)}
        close(ours("tree", data), reference("tree", data), f"trees in and out ({mode})")
        index = np.arange(6) % 4
        raises(SpecError, partial(ours, "tree", {"x": x, "pair": (x, index[:, None])}), "a leaf of another shape")


@check("builds/function", GRAPH_BUILDER)
def lowest_entry(subject: Subject) -> None:
    """``function(api)`` takes and gives the backend's own arrays."""
    for mode, ours, reference in both(subject, Small(), {"values": Small.INPUTS["values"]}):
        x, _ = batch(np.random.default_rng(0), 5)
        out = ours.to_numpy(ours.function("values")(ours.from_numpy(x)))
        close(out, reference("values", x), f"function('values') ({mode})")
        raises(Exception, partial(ours.function, "no_such_api"), "an unknown api")
