"""The in-process executor keeps the contract."""

import pytest

from rlcore.executor import ExecutorError
from rlcore.executors.local import LocalExecutor


class Counter:
    closed = 0

    def __init__(self, start, *, step=1):
        self.value, self.step = start, step

    def add(self, amount):
        self.value += amount * self.step
        return self.value

    def fail(self):
        raise KeyError("inside")

    def close(self):
        Counter.closed += 1


def test_calls_in_order_and_refs():
    executor = LocalExecutor()
    one, two = executor.spawn(Counter, 2, 10, step=2)
    ref = executor.put(5)
    assert executor.get(ref) == 5
    futures = [one.call("add", ref), two.call("add", 1), one.call("add", 1)]
    assert executor.wait(futures, count=3) == futures and all(f.done() for f in futures)
    assert [f.result() for f in futures] == [20, 12, 22]


def test_an_exception_comes_with_its_own_type():
    [one] = LocalExecutor().spawn(Counter, 1, 0)
    future = one.call("fail")
    with pytest.raises(KeyError, match="inside"):
        future.result()


def test_kill_and_shutdown():
    executor = LocalExecutor()
    one, two = executor.spawn(Counter, 2, 0)
    before = Counter.closed
    executor.kill(one)
    assert Counter.closed == before + 1
    with pytest.raises(ExecutorError, match="killed"):
        one.call("add", 1).result()
    assert two.call("add", 1).result() == 1
    executor.shutdown()
    executor.shutdown()
    assert Counter.closed == before + 2
