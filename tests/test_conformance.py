"""The published suites: what is ours passes, and what is broken on purpose fails the check that is made for it."""

import pickle
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from rlcore.cli.new_plugin import write_plugin
from rlcore.executor import Collective, Executor
from rlcore.executors.local import LocalCollective, LocalExecutor, LocalFuture
from rlcore.ops import Ops
from rlcore.plugins.discovery import COMPONENTS, EXECUTOR, GRAPH_BUILDER, HOOKS, pick
from rlcore.specs import TensorSpec
from rlcore.testing import (
    ComponentsConformance,
    ComponentTest,
    ExecutorConformance,
    GraphBuilderConformance,
    check_executors,
    op_cases,
    run_checks,
)
from rlcore.testing.checks import CHECKS, Subject, run_check
from rlcore.testing.suites import checks_for


class TestNumpy(GraphBuilderConformance):  # what must fail: test_conformance_graph_builders.py
    plugin = "numpy"


class TestLocal(ExecutorConformance):
    plugin = "local"


class TestCore(ComponentsConformance):
    plugin = "core"


def fails(kind, name, *checks, **shared):
    """Each of the checks fails; returns what the first says."""
    subject = Subject(pick(kind, name), {}, shared)
    known = {c.name: c for c in CHECKS[kind.name]}
    outcomes = [run_check(known[c], subject, {}) for c in checks]
    assert all(o.status == "failed" for o in outcomes), outcomes
    return outcomes[0].detail


def passes(kind, name, *checks, **shared):
    subject = Subject(pick(kind, name), {}, shared)
    known = {c.name: c for c in CHECKS[kind.name]}
    for check in checks:
        outcome = run_check(known[check], subject, {})
        assert outcome.ok, outcome.trace


def test_every_op_of_the_contract_is_checked():
    """Values of all; gradients of all that have one."""
    source = Path(op_cases.__file__).read_text()
    called = set(re.findall(r"\bops\.(\w+)\(", source))
    assert called == set(Ops.__abstractmethods__)
    point = ComponentTest(op_cases._Point(), {"results": {"zero": TensorSpec(())}})
    results = point.call(np.zeros((), np.float32), api="results")
    assert sorted(results) == list(op_cases.DIFFERENTIABLE)


def test_which_checks_apply_follows_from_the_capabilities():
    """What is not declared must be refused."""
    names = {c.name for c in checks_for(GRAPH_BUILDER, frozenset({"eager", "cpu"}))}
    assert "gradients/refused" in names and not names & {"gradients/each-op", "modes/one-graph-an-api"}
    names = {c.name for c in checks_for(EXECUTOR, frozenset({"collectives"}))}
    assert "tasks/refused" in names and "collectives/barrier" in names and "tasks/kill" not in names


# -- executors ---------------------------------------------------------------------------------------------------
class ThreadCollective(Collective):
    def __init__(self, rank, size, barrier, box):
        self.rank, self.size, self._barrier, self._box = rank, size, barrier, box

    def _all(self, buffer):
        self._box[self.rank] = np.array(buffer)
        self._barrier.wait(10)
        parts = [self._box[r] for r in range(self.size)]
        self._barrier.wait(10)
        return parts

    def all_reduce(self, buffer, *, op="mean"):
        LocalCollective().all_reduce(buffer, op=op)  # refuses an unknown op
        total = np.sum(self._all(buffer), 0, dtype=buffer.dtype)
        return total / self.size if op == "mean" else total

    def broadcast(self, buffer, *, root=0):
        return self._all(buffer)[root].copy()

    def barrier(self):
        self._barrier.wait(10)


class Threads(Executor):
    """Collectives over three threads; no tasks."""

    name = "threads"
    capabilities = frozenset({"collectives"})
    collective = ThreadCollective

    def launch(self, program, *args):
        size, results, errors = 3, {}, []
        barrier, box = threading.Barrier(size), {}

        def run(rank):
            try:
                results[rank] = program(self.collective(rank, size, barrier, box), *args)
            except Exception as e:
                errors.append(e)
                barrier.abort()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
        return [results[rank] for rank in range(size)]

    def shutdown(self): ...


COLLECTIVES = [c.name for c in checks_for(EXECUTOR, frozenset({"collectives"})) if "collectives" in c.name]


def test_three_ranks_pass():
    passes(EXECUTOR, "local", "tasks/refused", *COLLECTIVES, executor=Threads)


def changed(base, **methods):
    return type("Changed", (base,), methods)


def collective(**methods):
    return changed(Threads, collective=changed(ThreadCollective, **methods))


def swallow(self, make, name):
    handle = LocalExecutor._start(self, make, name)
    call = handle.call

    def quiet(method, *args, **kwargs):
        future = call(method, *args, **kwargs)
        return LocalFuture() if future._error else future

    handle.call = quiet
    return handle


def retype(self, make, name):
    handle = LocalExecutor._start(self, make, name)
    call = handle.call

    def other(method, *args, **kwargs):
        future = call(method, *args, **kwargs)
        return LocalFuture(error=RuntimeError(str(future._error))) if future._error else future

    handle.call = other
    return handle


def bare(self, role, count=1, *args, **kwargs):
    return [LocalExecutor._start(self, lambda: role(*args, **kwargs), "") for _ in range(count)]


PUTS = changed(LocalExecutor, capabilities=frozenset({"collectives"}), put=lambda self, value: value)
BROKEN_EXECUTORS = {
    "errors swallowed": (changed(LocalExecutor, _start=swallow), ["tasks/exceptions", "tasks/kill"]),
    "errors of another type": (changed(LocalExecutor, _start=retype), ["tasks/exceptions"]),
    "kill does nothing": (changed(LocalExecutor, kill=lambda self, handle: None), ["tasks/kill"]),
    "roles not closed": (changed(LocalExecutor, shutdown=lambda self: None), ["tasks/shutdown", "tasks/worker-hooks"]),
    "refs not resolved": (changed(LocalExecutor, resolve=lambda self, value: value), ["tasks/values"]),
    "no worker hooks": (changed(LocalExecutor, spawn=bare), ["tasks/worker-hooks"]),
    "mean is a sum": (
        collective(all_reduce=lambda self, buffer, *, op="mean": ThreadCollective.all_reduce(self, buffer, op="sum")),
        ["collectives/all-reduce"],
    ),
    "in place": (
        collective(all_reduce=lambda self, buffer, *, op="mean": np.copyto(buffer, 1.0) or buffer),
        ["collectives/all-reduce"],
    ),
    "root ignored": (
        collective(broadcast=lambda self, buffer, *, root=0: ThreadCollective.broadcast(self, buffer)),
        ["collectives/broadcast"],
    ),
    "no barrier": (collective(barrier=lambda self: None), ["collectives/barrier"]),
    "tasks it does not declare": (PUTS, ["tasks/refused"]),
}


@pytest.mark.parametrize("what", BROKEN_EXECUTORS)
def test_a_broken_executor_fails(what):
    broken, checks = BROKEN_EXECUTORS[what]
    fails(EXECUTOR, "local", *checks, executor=broken)


# -- executors of several processes ------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def procs(tmp_path_factory):
    """The module of the executor that ``rlcore new-plugin`` writes: a process a role."""
    import importlib
    import sys

    project = write_plugin("procs", "executor", tmp_path_factory.mktemp("procs"))
    sys.path.insert(0, str(project))  # the processes that it starts get the path, too
    yield importlib.import_module("rl_procs.executor")
    sys.path.remove(str(project))


def deaf(handle):
    """Does not notice that its process ends."""

    def receive(self):
        while True:
            try:
                ok, value, _ = pickle.loads(self._connection.recv_bytes())
            except (EOFError, OSError):
                return
            future = self._pending.popleft()
            future.inner.set_result(value) if ok else future.inner.set_exception(value)

    handle._receive = receive


def patient(module):
    """Waits for every role, however long that takes."""

    def shutdown(self):
        for handle in self._handles:
            handle.stop()
            handle.process.join(8)

    return changed(module.ProcsExecutor, shutdown=shutdown)


def test_processes_that_are_broken(procs, monkeypatch):
    def make(executor=procs.ProcsExecutor):
        return lambda: executor({})

    passes(EXECUTOR, "local", "tasks/dead-worker", "tasks/shutdown", "tasks/exceptions", executor=make())
    assert "shutdown took" in fails(EXECUTOR, "local", "tasks/shutdown", executor=make(patient(procs)))
    with monkeypatch.context() as m:  # no trace of the role comes along
        m.setattr(procs, "_answer", lambda connection, ok, value: connection.send((ok, value, "")))
        m.setattr(procs.ProcsHandle, "_receive", procs.ProcsHandle._receive)
        deaf(procs.ProcsHandle)
        assert "traceback" in fails(EXECUTOR, "local", "tasks/exceptions", executor=make())
    with monkeypatch.context() as m:
        m.setattr(procs.ProcsHandle, "_receive", procs.ProcsHandle._receive)
        deaf(procs.ProcsHandle)
        m.setattr(check_executors, "DEAD", 2.0)
        fails(EXECUTOR, "local", "tasks/dead-worker", executor=make())


# -- packs and packages ------------------------------------------------------------------------------------------
PACK = """
import sys
from rlcore.plugins import PluginInfo, hookimpl
class Plugin:
    info = PluginInfo(api_version="1.0", summary="wrong in every way")
    @hookimpl
    def rlcore_register_components(self, registry):
        registry.add("network", "wrong-network", "wrong_parts:Network")
        registry.add("exploration", "wrong-exploration", "wrong_parts:Exploration")
        registry.add("policy", "wrong-policy", "wrong_parts:Policy")
        registry.add("optimizer", "wrong-optimizer", "wrong_parts:Up")
        registry.add("replay", "wrong-replay", "wrong_parts:Forgetful")
        registry.add_environment("wrong/Env-v0", "wrong_parts:Env")
"""
PARTS = """
import gymnasium, numpy as np
from rlcore.component import api
from rlcore.components.exploration import EpsilonGreedy
from rlcore.components.networks import MLP
from rlcore.components.optimizers import SGD
from rlcore.memories.replay import UniformReplay
class Network(MLP):
    def __init__(self): super().__init__((3,))
    @api
    def __call__(self, x): return self.ops.sum(super().__call__(x), -1)
class Exploration(EpsilonGreedy):
    @api
    def __call__(self, q_values, progress): return self.ops.argmax(q_values, -1) + 1
class Policy(MLP):
    def __init__(self, num_actions): super().__init__((num_actions + 1,))
class Up(SGD):
    @api
    def step(self, flat, gradient, learning_rate):
        self.ops.assign(flat, flat + learning_rate * gradient)
        return learning_rate
class Forgetful(UniformReplay):
    def add(self, batch): super().add({k: v[:1] for k, v in batch.items()})
class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None): return np.array([0.5], np.float32), {}
    def step(self, action): return np.array([2.0], np.float32), 0.0, False, False, {}
"""


def test_a_broken_pack_fails(site):
    site.add("rl-wrong", "components", {"wrong": "wrong:Plugin"}, wrong=PACK, wrong_parts=PARTS)
    outcomes = {o.check: o for o in run_checks(COMPONENTS, "wrong", only=["components/"])}
    assert {c for c, o in outcomes.items() if o.status == "failed"} == {
        f"components/{kind}"
        for kind in ("networks", "explorations", "policies", "optimizers", "replays", "environments")
    }
    assert "expected float32[B, n]" in outcomes["components/networks"].detail
    import gymnasium

    gymnasium.registry.pop("wrong/Env-v0", None)


BAD_PACKAGE = """
import os, ray
print("loud")
os.environ["X_LOUD"] = "1"
from rlcore.plugins import PluginInfo, hookimpl
VERSION = "1.0"
class Plugin:
    info = PluginInfo(api_version=VERSION, summary="", capabilities=("eager", "gradients", "cpu"))
    @hookimpl
    def rlcore_make_graph_builder(self):
        from rlcore.backends.numpy.builder import NumpyGraphBuilder
        return NumpyGraphBuilder()
"""


def test_a_careless_package_fails(site, capsys):
    for heavy in ("ray", "bad_pack"):
        (site.folder / heavy).mkdir()
        (site.folder / heavy / "__init__.py").write_text("")
    (site.folder / "bad_pack" / "plugin.py").write_text(BAD_PACKAGE)
    site.add("rl-bad", "graph_builders", {"Bad_One": "bad_pack.plugin:Plugin"}, requires=())
    outcomes = {o.check: o for o in run_checks(GRAPH_BUILDER, "bad-one", only=["package/", "modes/as-declared"])}
    failed = {c for c, o in outcomes.items() if not o.ok}
    names = ("name", "requires-rlcore", "info", "typed", "light-import", "parallel-import")
    assert failed == {*(f"package/{n}" for n in names), "modes/as-declared"}
    assert "ray" in outcomes["package/light-import"].detail


OBSERVER = """
import numpy as np
from rlcore.plugins import PluginInfo, hookimpl
class Plugin:
    info = PluginInfo(api_version="1.0", summary="meddles")
    @hookimpl
    def rlcore_after_build(self, executable):
        executable.rng.random()
        if "act" in executable.graph.apis:
            executable.rng = np.random.default_rng(99)
        if "update" in executable.graph.apis:
            executable._trained *= 1.5
"""


def test_an_observer_that_meddles_fails(site):
    site.add("rl-meddler", "hooks", {"meddler": "meddler:Plugin"}, meddler=OBSERVER)
    outcomes = {o.check: o for o in run_checks(HOOKS, "meddler", only=["runs/"])}
    assert "other weights" in outcomes["runs/observes"].detail


def test_expected_failures_are_strict():
    expected = {"tasks/kill": "it lingers"}
    outcomes = {o.check: o for o in run_checks(EXECUTOR, "local", expected_failures=expected, only=["kill"])}
    assert outcomes["tasks/kill"].status == "unexpected pass" and not outcomes["tasks/kill"].ok
    outcomes = {o.check: o for o in run_checks(EXECUTOR, "local", expected_failures={"tasks/typo": "x"}, only=["kill"])}
    assert "no such check" in outcomes["tasks/typo"].detail and outcomes["tasks/kill"].ok
    subject = Subject(pick(EXECUTOR, "local"), {}, {"executor": changed(LocalExecutor, kill=lambda s, h: None)})
    kill = next(c for c in CHECKS["executor"] if c.name == "tasks/kill")
    outcome = run_check(kill, subject, {"tasks/kill": "see #12"})
    assert outcome.status == "expected failure" and outcome.ok and outcome.detail.startswith("see #12: ")


def test_no_pytest_plugin():
    """rlcore.testing loads in nobody's test run unasked."""
    from importlib.metadata import distribution

    assert not [e for e in distribution("rlcore").entry_points if e.group == "pytest11"]
