"""Every check of the graph builders' suite can fail; a builder that only acts passes. The rest: test_conformance.py."""

import sys

import numpy as np
import pytest
from hypothesis import Phase, settings

from rlcore.backend import Capabilities
from rlcore.backends.numpy.builder import NumpyExecutable, NumpyGraphBuilder
from rlcore.backends.numpy.ops import NumpyOps
from rlcore.components.optimizers import Adam
from rlcore.plugins import discovery
from rlcore.plugins.discovery import GRAPH_BUILDER
from rlcore.specs import TensorSpec
from rlcore.testing import ComponentTest, op_cases
from rlcore.testing.checks import CHECKS, Subject, run_check
from rlcore.testing.suites import checks_for

GROUPS = ("ops", "gradients", "optimizers", "modes", "weights", "builds", "differential")


# -- builders that are wrong in one thing --------------------------------------------------------------------------
EAGER = Capabilities(modes=("eager",), gradients=True, devices=("cpu",))
BROKEN = []  # (builder, the check that must fail, what its message must show)


def wrong(check, shows, **attributes):
    """Add a NumPy builder with other attributes."""

    def add(cls):
        BROKEN.append((type(cls.__name__, (NumpyGraphBuilder,), {**attributes_of(cls), **attributes}), check, shows))
        return cls

    return add


def attributes_of(cls):
    """How a builder uses a class of ops or of executables."""
    if issubclass(cls, NumpyOps):
        return {"ops_base": cls}
    if issubclass(cls, NumpyExecutable):

        def _build(self, graph, instance, mode, device, seed):
            return cls(graph, instance, mode, seed, self.ops)

        return {"_build": _build}
    return {k: v for k, v in vars(cls).items() if not k.startswith("__")}


@wrong("ops/elementwise", "relu (eager, batch")
class ReluPassesNegatives(NumpyOps):
    def relu(self, x):
        return x * 1.0


@wrong("ops/shapes", "mean of rows (eager")
class MeanIsSum(NumpyOps):
    def mean(self, x, axis=None, keepdims=False):
        return self.sum(x, axis, keepdims) / (1 if axis == -1 else x.size)


@wrong("ops/integers", "argmax (eager")
class ArgmaxOfLastTie(NumpyOps):
    def argmax(self, x, axis):
        return x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis)


@wrong("ops/integers", "one_hot (eager")
class OneHotInFloat64(NumpyOps):
    def one_hot(self, x, depth):
        return super().one_hot(x, depth).astype(np.float64)


@wrong("ops/network", "conv2d same, stride 2 (eager")
class PadsOnTheWrongSide(NumpyOps):
    def conv2d(self, x, kernel, *, stride, padding):
        if padding != "same":
            return super().conv2d(x, kernel, stride=stride, padding=padding)
        flipped = super().conv2d(x[:, ::-1, ::-1], kernel[::-1, ::-1], stride=stride, padding=padding)
        return flipped[:, ::-1, ::-1]


@wrong("ops/accumulate", "(eager")
class AssignDoesNothing(NumpyOps):
    def assign(self, variable, value):
        pass


@wrong("gradients/each-op", "gradient of abs (eager)")
class GradientOffByOnePercent(NumpyOps):
    def value_and_grad(self, loss_fn, parameters):
        loss, aux, gradient = super().value_and_grad(loss_fn, parameters)
        return loss, aux, gradient * np.float32(1.01)


@wrong("gradients/each-op", "gradient of stop_gradient (eager)")
class StopGradientPasses(NumpyOps):
    def stop_gradient(self, x):
        return x


@wrong("gradients/each-op", "gradient of")
class GradientOfUnusedVariable(NumpyOps):
    def value_and_grad(self, loss_fn, parameters):
        loss, aux, gradient = super().value_and_grad(loss_fn, parameters)
        return loss, aux, np.where(gradient == 0, np.float32(0.1), gradient)


@wrong("gradients/each-op", "NotImplementedError")
class ClaimsGradients(NumpyOps):
    def value_and_grad(self, loss_fn, parameters):
        raise NotImplementedError


@wrong("optimizers/all", "adam, step 1 (eager)")
class AdamSkipsCorrection:
    overrides = {
        (Adam, "step"): lambda self, flat, gradient, rate: self.ops.assign(flat, flat - rate * 0.1 * gradient) or rate
    }


@wrong("modes/as-declared", "static")
class ClaimsStatic:
    capabilities = Capabilities(modes=("eager", "static"), gradients=True, devices=("cpu",))


@wrong("modes/as-declared", "gpu")
class ClaimsADevice:
    capabilities = Capabilities(modes=("eager",), gradients=True, devices=("cpu", "gpu"))


@wrong("modes/as-declared", "name")
class HasAnotherName:
    name = "other"


@wrong("modes/others-refused", "nothing was raised")
class TakesAnyMode:
    def check(self, what, value, known):
        return value or known[0]


class Counting(NumpyExecutable):
    """Counts a graph for every other batch length, as one that retraces does."""

    def _make_function(self, api):
        function, seen = super()._make_function(api), set()

        def counted(*args):
            key = str([np.shape(a) for a in args])
            self.trace_count[api.name] += key not in seen
            seen.add(key)
            return function(*args)

        return counted


@wrong(
    "modes/one-graph-an-api",
    "graphs captured: {'values': 6",
    capabilities=Capabilities(modes=("static",), gradients=True, devices=("cpu",)),
)
class StaticRetraces(Counting):
    pass


@wrong("modes/eager-captures-nothing", "AssertionError")
class EagerCaptures(Counting):
    pass


@wrong("weights/round-trip", "eager")
class SetWeightsIgnores(NumpyExecutable):
    def _write_trainable(self, buffer):
        pass


@wrong("weights/round-trip", "no copy")
class WeightsAreNoCopy(NumpyExecutable):
    def _read_trainable(self):
        return self._trained


@wrong("weights/round-trip", "after version 9")
class ForgetsTheVersion(NumpyExecutable):
    def set_weights(self, weights):
        super().set_weights(weights)
        self._version = 0


@wrong("weights/state", "state")
class StateLeavesMomentsOut(NumpyExecutable):
    def _write_state(self, state):
        own = super().get_state()
        super()._write_state({p: own[p] if "moment" in p else v for p, v in state.items()})


@wrong("weights/refused", "refused weights changed something")
class WritesBeforeItChecks(NumpyExecutable):
    def set_weights(self, weights):
        self._trained[...] = 0.0
        super().set_weights(weights)


@wrong("weights/refused", "nothing was raised")
class TakesAnyWeights(NumpyExecutable):
    def set_weights(self, weights):
        self._trained[...] = weights.buffer


@wrong("builds/same-seed", "other initial weights")
class OtherInitialWeights(NumpyExecutable):
    def __init__(self, graph, instance, mode, seed, ops):
        super().__init__(graph, instance, mode, seed + 1, ops)


@wrong("builds/same-seed", "noise of one seed")
class NoiseOfItsOwn(NumpyExecutable):
    def __init__(self, *args):
        super().__init__(*args)
        self.rng = np.random.default_rng(0)


@wrong("builds/same-seed", "another seed, the same weights")
class IgnoresTheSeed(NumpyExecutable):
    def __init__(self, graph, instance, mode, seed, ops):
        super().__init__(graph, instance, mode, 11, ops)


@wrong("builds/side-by-side", "another build")
class BuildsShareState:
    builds = {}

    def _build(self, graph, instance, mode, device, seed):
        built = NumpyGraphBuilder()._build(graph, instance, mode, device, seed)
        return self.builds.setdefault(id(graph), built)


@wrong("builds/frozen-target", "training changed the frozen 'target")
class TrainsTheTarget(NumpyExecutable):
    def __call__(self, api, *args):
        out = super().__call__(api, *args)
        if api == "update":
            self.instance.root.copied.flat[...] += 0.1
        return out


@wrong("builds/inputs", "an input of another shape")
class ChecksNoInput(NumpyExecutable):
    def __call__(self, api, *args):
        return self.function(api)(*args)


@wrong("builds/inputs", "strided")
class DropsStrides(NumpyExecutable):
    def from_numpy(self, array):
        return array if array.flags.carray else np.frombuffer(array.tobytes("A"), array.dtype).reshape(array.shape)


@wrong("builds/function", "function('values') (eager)")
class FunctionIsAnother(NumpyExecutable):
    def function(self, api):
        function = super().function(api)
        return (lambda *args: function(*args) + 1) if api == "values" else function


@wrong("differential/random-trees", "'name': 'sequential'")
class GeluIsAnother(NumpyOps):
    def gelu(self, x):
        return x * self.sigmoid(1.702 * x)


class Bare(Subject):
    """A builder that no plugin declares."""

    def capabilities(self):
        return self.shared["builder"].capabilities.names


def subject_of(builder, kind=Subject):
    return kind(discovery.pick(GRAPH_BUILDER, "numpy"), shared={"builder": builder})


def of_this_suite(checks):
    return [c for c in checks if c.name.split("/")[0] in GROUPS]


def check_named(name):
    checks_for(GRAPH_BUILDER, frozenset())  # adds them
    [found] = [c for c in CHECKS[GRAPH_BUILDER.name] if c.name == name]
    return found


@pytest.fixture
def unshrunk():
    """Hypothesis reports the first failure: to look for a smaller one takes half a minute."""
    before = settings.get_current_profile_name()
    settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.generate])
    settings.load_profile("unshrunk")
    yield
    settings.load_profile(before)


@pytest.mark.parametrize(("builder", "name", "shows"), BROKEN, ids=[b.__name__ for b, _, _ in BROKEN])
def test_a_wrong_builder_fails(builder, name, shows, unshrunk):
    outcome = run_check(check_named(name), subject_of(builder()), {})
    assert outcome.status == "failed", outcome
    assert shows in outcome.detail, outcome.detail


def test_every_check_can_fail():
    checks_for(GRAPH_BUILDER, frozenset())
    have = {c.name for c in of_this_suite(CHECKS[GRAPH_BUILDER.name])}
    assert have == {name for _, name, _ in BROKEN} | {"gradients/refused"}  # that one: below


class ActsOnly(NumpyGraphBuilder):
    capabilities = Capabilities(modes=("eager",), gradients=False, devices=("cpu",))


def test_a_builder_that_only_acts_passes():
    subject = subject_of(ActsOnly(), Bare)
    checks = of_this_suite(checks_for(GRAPH_BUILDER, subject.capabilities()))
    assert "gradients/refused" in {c.name for c in checks} and "optimizers/all" not in {c.name for c in checks}
    for check in checks:
        outcome = run_check(check, subject, {})
        assert outcome.ok, f"{check.name}: {outcome.trace}"


def test_gradients_that_are_not_declared_must_be_refused():
    outcome = run_check(check_named("gradients/refused"), subject_of(NumpyGraphBuilder()), {})
    assert outcome.status == "failed" and "nothing was raised" in outcome.detail


def test_a_builder_of_its_own_ops_takes_gradients_with_them():
    """Both the plain ops and those of a loss come from ``ops_base``."""

    class Doubled(NumpyOps):
        def relu(self, x):
            return 2.0 * super().relu(x)

    class Builder(NumpyGraphBuilder):
        ops_base = Doubled

    assert isinstance(Builder().ops, Doubled)
    zero = np.zeros((), np.float32)
    inputs = {"gradient": {"zero": TensorSpec(())}}
    given, plain = (
        ComponentTest(op_cases.Gradients(["relu"]), inputs, backend=b).call(zero, api="gradient")["gradient"]
        for b in (Builder(), "numpy")
    )
    assert np.abs(plain).max() > 0.1 and not np.allclose(given, plain)


def test_without_hypothesis_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    outcome = run_check(check_named("differential/random-trees"), subject_of(NumpyGraphBuilder()), {})
    assert outcome.status == "failed" and "pip install 'rlcore[testing]'" in outcome.detail
