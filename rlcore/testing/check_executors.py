"""What every executor must do. No check needs a framework: the training run acts and learns with NumPy."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rlcore.errors import ConfigError, UnsupportedCapability
from rlcore.executor import Executor, ExecutorError, Handle, Ref, WorkerDied
from rlcore.plugins.discovery import EXECUTOR
from rlcore.testing import roles
from rlcore.testing.checks import Subject, check
from rlcore.testing.roles import Counter, Oops

PATIENCE = 60.0  # seconds that a worker may take to start on a busy machine
DEAD = 20.0  # seconds within which a dead worker must be noticed
SHUTDOWN = 5.0  # seconds that the contract allows
FRAMEWORKS = {"torch", "tensorflow", "jax"}


@contextmanager
def running(subject: Subject) -> Iterator[Executor]:
    """A new executor, which is shut down afterwards."""
    factory = subject.shared.get("executor")
    executor: Executor = factory() if factory else subject.session.executor(subject.name, subject.options)
    try:
        yield executor
    finally:
        executor.shutdown()


def result(future: Any) -> Any:
    return future.result(timeout=PATIENCE)


def raised(call: Callable[[], Any], kind: type[BaseException], what: str) -> Any:
    """The exception of a call, which must be of a kind."""
    try:
        value = call()
    except kind as e:
        return e
    except Exception as e:
        raise AssertionError(f"{what}: expected {kind.__name__}, got {type(e).__name__}: {e}") from e
    raise AssertionError(f"{what}: expected {kind.__name__}, but it returned {value!r}")


def eventually(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat") as file:  # a zombie is dead: its parent has not looked yet
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def gone(pid: int) -> bool:
    return not alive(pid)


@check("options/unknown", EXECUTOR)
def unknown_option(subject: Subject) -> None:
    options = {**subject.options, "no_such_option": 1}
    error = raised(lambda: subject.session.executor(subject.name, options), ConfigError, "an unknown option")
    assert "no_such_option" in str(error), f"the error does not name the option: {error}"


@check("capabilities/as-declared", EXECUTOR)
def as_declared(subject: Subject) -> None:
    with running(subject) as executor:
        declared, can = subject.capabilities(), executor.capabilities
    assert can == declared, f"the plugin's info declares {sorted(declared)}, the executor has {sorted(can)}"
    assert executor.name == subject.found.name, f"its name is '{executor.name}', the plugin's '{subject.found.name}'"


# -- tasks -------------------------------------------------------------------------------------------------------
@check("tasks/calls-in-order", EXECUTOR, of="tasks")
def calls_in_order(subject: Subject) -> None:
    with running(subject) as executor:
        one, two = executor.spawn(Counter, 2, 10, step=2)
        futures = [h.call("add", n) for n in range(20) for h in (one, two)]
        expected = np.repeat(10 + 2 * np.cumsum(range(20)), 2).tolist()
        assert [result(f) for f in futures] == expected
        assert all(f.done() for f in futures), "a future whose result was read is not done"
        assert result(futures[0]) == 10, "a result can be read twice"
        [third] = executor.spawn(Counter, 1, 7)
        assert result(third.call("add", 0)) == 7 and result(one.call("add", 0)) == expected[-1]


@check("tasks/values", EXECUTOR, of="tasks")
def values(subject: Subject) -> None:
    tree: dict[str, Any] = {
        "x": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "y": (1.5, None, "text"),
        "big": np.zeros(1 << 21),
    }
    with running(subject) as executor:
        [one] = executor.spawn(Counter)
        ref = executor.put(tree)
        assert isinstance(ref, Ref)
        answers = [executor.get(ref), result(one.call("echo", ref)), result(one.call("echo", tree))]
        answers.append(result(one.call("echo", 1, other=ref))[1])
        for answer in answers:
            assert answer["x"].dtype == np.uint8 and np.array_equal(answer["x"], tree["x"])
            assert answer["y"] == tree["y"] and answer["big"].shape == (1 << 21,)


@check("tasks/exceptions", EXECUTOR, of="tasks")
def exceptions(subject: Subject) -> None:
    with running(subject) as executor:
        [one] = executor.spawn(Counter)
        error = raised(lambda: result(one.call("fail", 17)), Oops, "a method that raises")
        assert error.code == 17, "the exception lost its state"
        text = "".join(traceback.format_exception(error))
        assert "_deeper_inside" in text, f"the role's own traceback is not in the exception:\n{text}"
        raised(lambda: result(one.call("no_such_method")), AttributeError, "a method that is not there")
        assert result(one.call("add", 1)) == 1, "the role must go on after an exception"


@check("tasks/constructor", EXECUTOR, of="tasks")
def constructor(subject: Subject) -> None:
    def make_and_call() -> Any:
        [one] = executor.spawn(Counter, 1, fail=True)
        return result(one.call("add", 1))

    with running(subject) as executor:
        error = raised(make_and_call, Oops, "a constructor that raises")
        assert error.code == 1


@check("tasks/wait", EXECUTOR, of="tasks")
def wait(subject: Subject) -> None:
    with running(subject) as executor:
        slow, fast = executor.spawn(Counter, 2)
        result(slow.call("add", 0)), result(fast.call("add", 0))
        futures = [slow.call("sleep", 1.0), fast.call("fail", 1)]
        start = time.monotonic()
        done = executor.wait(futures, count=1, timeout=PATIENCE)
        assert futures[1] in done, "a failed future is done"
        assert set(map(id, executor.wait(futures, count=2, timeout=PATIENCE))) == set(map(id, futures))
        late = slow.call("sleep", 1.5)
        if not late.done():  # elsewhere
            took = time.monotonic()
            assert executor.wait([late], timeout=0.2) == [] and time.monotonic() - took < 1.2, "timeout of wait"
            error = raised(lambda: late.result(timeout=0.2), ExecutorError, "a result that takes too long")
            assert "sleep" in str(error), f"the timeout does not say what was waited for: {error}"
            assert result(late) == "awake", "a result must still come after a timeout"
        assert time.monotonic() - start < PATIENCE


@check("tasks/kill", EXECUTOR, of="tasks")
def kill(subject: Subject) -> None:
    with running(subject) as executor:
        one, two = executor.spawn(Counter, 2)
        result(one.call("add", 1)), result(two.call("add", 1))
        executor.kill(one)
        raised(lambda: result(one.call("add", 1)), WorkerDied, "a call of a killed role")
        assert result(two.call("add", 1)) == 2, "the other role must go on"
        executor.kill(one)  # again: nothing


@check("tasks/dead-worker", EXECUTOR, of="tasks")
def dead_worker(subject: Subject) -> None:
    with running(subject) as executor:
        one, two, three = executor.spawn(Counter, 3)
        pids = [result(h.call("pid")) for h in (one, two, three)]
        if os.getpid() in pids:
            return  # a role that lives here can't die alone
        assert len(set(pids)) == 3, f"two roles in one process: {pids}"
        pending = [one.call("die"), one.call("add", 1), two.call("sleep", 60.0)]
        os.kill(pids[1], signal.SIGKILL)
        start = time.monotonic()
        for future in pending:
            error = raised(partial(future.result, timeout=DEAD), WorkerDied, "a result that a dead worker owes")
            assert "Counter" in str(error), f"the error does not name the role: {error}"
        assert time.monotonic() - start < DEAD, "a dead worker was noticed too late"
        assert all(f in executor.wait(pending, count=3, timeout=5) for f in pending), "futures of the dead are done"
        raised(lambda: result(one.call("add", 1)), WorkerDied, "a later call of a dead worker")
        assert result(three.call("add", 1)) == 1, "the others must go on"


@check("tasks/shutdown", EXECUTOR, of="tasks")
def shutdown(subject: Subject) -> None:
    with tempfile.TemporaryDirectory() as folder, running(subject) as executor:
        files = [str(Path(folder, f"closed-{i}")) for i in range(2)]
        idle = [executor.spawn(Counter, 1, closed=f)[0] for f in files]
        pids = [result(h.call("pid")) for h in idle]
        if os.getpid() not in pids:
            [busy] = executor.spawn(Counter)
            pids.append(result(busy.call("pid")))
            busy.call("sleep", 600.0)
        start = time.monotonic()
        executor.shutdown()
        took = time.monotonic() - start
        assert took < SHUTDOWN, f"shutdown took {took:.1f} s, {SHUTDOWN:.0f} are allowed"
        for file, pid in zip(files, pids, strict=False):
            assert Path(file).exists(), "close() of an idle role was not called"
            assert int(Path(file).read_text()) == pid, "close() ran in another process"
        for pid in pids:
            if pid != os.getpid():
                eventually(partial(gone, pid), SHUTDOWN, f"worker {pid} is still there after shutdown")
        executor.shutdown()  # again: nothing
        raised(lambda: result(idle[0].call("add", 1)), ExecutorError, "a call after shutdown")


DRIVER = """
import json, os, sys
from rlcore.plugins.session import Session
from rlcore.testing.roles import Counter
executor = Session([]).executor(sys.argv[1], json.loads(sys.argv[2]))
handles = executor.spawn(Counter, 2)
print("pids", json.dumps([h.call("pid").result(timeout=60) for h in handles]), flush=True)
handles[0].call("sleep", 600.0)
sys.stdin.readline()
"""


@check("tasks/no-orphans", EXECUTOR, of="tasks")
def no_orphans(subject: Subject) -> None:
    if "executor" in subject.shared:
        return  # made here, so that no other process can make one
    words = [sys.executable, "-c", DRIVER, subject.name, json.dumps(dict(subject.options))]
    driver = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    try:
        line = next((text for text in driver.stdout if text.startswith("pids ")), "")
        assert line, "the driver process failed"
        pids = [pid for pid in json.loads(line.removeprefix("pids ")) if pid != driver.pid]
    finally:
        driver.kill()
        driver.communicate()
    for pid in pids:
        eventually(partial(gone, pid), 20, f"worker {pid} outlived its killed driver")


RECORDER = """
import os, pathlib
from rlcore.plugins import PluginInfo, hookimpl

class Recorder:
    info = PluginInfo(api_version="1.0")

    def note(self, *words):
        with open(pathlib.Path(__file__).with_name("notes.txt"), "a") as file:
            print(os.getpid(), *words, file=file)

    @hookimpl
    def rlcore_worker_start(self, worker):
        self.note("start", worker.role, worker.index)

    @hookimpl
    def rlcore_worker_finish(self, worker, error):
        self.note("finish", worker.role, worker.index, type(error).__name__)
"""
METADATA = "Metadata-Version: 2.1\nName: rlcore-check-recorder\nVersion: 1.0\n"


@check("tasks/worker-hooks", EXECUTOR, of="tasks")
def worker_hooks(subject: Subject) -> None:
    """An observer, installed for the moment, sees start and finish of each role in the role's own process."""
    from rlcore.plugins.session import Session

    folder = Path(tempfile.mkdtemp())
    info = folder / "rlcore_check_recorder-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text("[rlcore.hooks]\ncheck-recorder = rlcore_check_recorder:Recorder\n")
    (folder / "rlcore_check_recorder.py").write_text(RECORDER)
    before = os.environ.get("PYTHONPATH")
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), before]))
    importlib.invalidate_caches()
    try:
        session = Session(["check-recorder"])
        factory = subject.shared.get("executor")
        executor = session.executor(factory() if factory else subject.name, subject.options)
        try:
            handles = executor.spawn(Counter, 2)
            pids = [result(h.call("pid")) for h in handles]
            raised(lambda: result(executor.spawn(Counter, 1, fail=True)[0].call("pid")), Oops, "a failing constructor")
        finally:
            executor.shutdown()
        lines = (folder / "notes.txt").read_text().splitlines() if (folder / "notes.txt").exists() else []
        for i, pid in enumerate(pids):
            for line in (f"{pid} start Counter {i}", f"{pid} finish Counter {i} NoneType"):
                assert line in lines, f"no hook call '{line}'; there were: {lines}"
        assert any(line.endswith("finish Counter 2 Oops") for line in lines), f"no finish after a failed start: {lines}"
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("rlcore_check_recorder", None)
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
        shutil.rmtree(folder, ignore_errors=True)


@check("tasks/no-framework", EXECUTOR, of="tasks")
def no_framework(subject: Subject) -> None:
    with running(subject) as executor:
        [one] = executor.spawn(Counter)
        if result(one.call("pid")) != os.getpid():
            extra = FRAMEWORKS & set(result(one.call("modules")))
            assert not extra, f"a worker that needs no framework imports {sorted(extra)}"


@check("tasks/trains-as-local", EXECUTOR, of="tasks")
def trains_as_local(subject: Subject) -> None:
    """A short DQN run ends with the same parameters, bit for bit, as on the local executor."""
    from rlcore.runs.config import resolve
    from rlcore.workflows.off_policy import off_policy

    settings = {"hidden": [16], "learning_starts_env_steps": 100, "train_every_env_steps": 20, "n_step": 3}
    run = {"backend": "numpy", "steps": 400, "seed": 5, "hooks": []}
    buffers = []
    for name in (subject.name, "local"):
        _, learner, actor = resolve("dqn", "CartPole-v1", settings, **run)
        factory = subject.shared.get("executor") if name == subject.name else None
        options = subject.options if name == subject.name else {}
        executor = learner.session.executor(factory() if factory else name, options)
        try:
            *_, last = off_policy(executor, learner, actor, env="CartPole-v1", num_envs=2, steps=400, seed=5)
        finally:
            executor.shutdown()
        assert last.env_steps >= 400 and last.updates > 10 and last.weights is not None
        buffers.append(last.weights.buffer)
    assert np.array_equal(buffers[0], buffers[1]), f"parameters differ by up to {np.abs(buffers[0] - buffers[1]).max()}"


@check("tasks/refused", EXECUTOR, without="tasks")
def tasks_refused(subject: Subject) -> None:
    with running(subject) as executor:
        for call in (
            lambda: executor.spawn(Counter),
            lambda: executor.put(1),
            lambda: executor.get(Ref(1)),
            lambda: executor.wait([]),
            lambda: executor.kill(Handle),  # type: ignore[arg-type]
        ):
            error = raised(call, UnsupportedCapability, "a task")
            assert "tasks" in str(error), error


# -- collectives -------------------------------------------------------------------------------------------------
@check("collectives/ranks", EXECUTOR, of="collectives")
def ranks(subject: Subject) -> None:
    with running(subject) as executor:
        seen = executor.launch(roles.where)
        assert seen == [(rank, len(seen)) for rank in range(len(seen))] and seen, f"(rank, size) were {seen}"


@check("collectives/all-reduce", EXECUTOR, of="collectives")
def all_reduce(subject: Subject) -> None:
    with running(subject) as executor:
        for op in ("mean", "sum"):
            for dtype in ("float32", "float64"):
                answers = executor.launch(roles.reduced, op, dtype)
                size = len(answers)
                expected = np.array([[(size - 1) / 2], [1.0]]) * (size if op == "sum" else 1)
                for buffer, untouched in answers:
                    assert buffer.dtype == dtype and buffer.shape == (2, 1), f"{op}: {buffer.dtype}{buffer.shape}"
                    np.testing.assert_allclose(buffer, expected, rtol=1e-6, err_msg=op)
                    assert untouched, f"{op}: the rank's own buffer was changed or is what was returned"
        raised(lambda: executor.launch(roles.reduced, "median", "float32"), ConfigError, "an unknown op")


@check("collectives/broadcast", EXECUTOR, of="collectives")
def broadcast(subject: Subject) -> None:
    with running(subject) as executor:
        size = len(executor.launch(roles.where))
        for root in {0, size - 1}:
            for buffer in executor.launch(roles.broadcasted, root):
                np.testing.assert_array_equal(buffer, np.full(3, root, np.float32))


@check("collectives/barrier", EXECUTOR, of="collectives")
def barrier(subject: Subject) -> None:
    with tempfile.TemporaryDirectory() as folder, running(subject) as executor:
        seen = executor.launch(roles.in_step, folder)
        assert seen == [len(seen)] * len(seen), f"ranks that had come when each went on: {seen}"


@check("collectives/exceptions", EXECUTOR, of="collectives")
def collective_exceptions(subject: Subject) -> None:
    with running(subject) as executor:
        error = raised(lambda: executor.launch(roles.failing, 23), Oops, "a rank that raises")
        assert error.code == 23 and "failing" in "".join(traceback.format_exception(error))
        assert executor.launch(roles.where), "a launch after a failed one"


@check("collectives/refused", EXECUTOR, without="collectives")
def collectives_refused(subject: Subject) -> None:
    with running(subject) as executor:
        error = raised(lambda: executor.launch(roles.where), UnsupportedCapability, "launch")
        assert "collectives" in str(error) and executor.name in str(error), error
