"""Roles and programs that the executor checks run: in a module, so that other processes can import them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from rlcore.executor import Collective


class Oops(Exception):
    """An exception with state, which must survive the way back."""

    def __init__(self, code: int, text: str = "on purpose") -> None:
        super().__init__(code, text)
        self.code = code


class Counter:
    """:param closed: file that is written when the role is closed."""

    def __init__(self, start: int = 0, *, step: int = 1, closed: str | None = None, fail: bool = False) -> None:
        if fail:
            raise Oops(1, "in the constructor")
        self.value, self.step, self.closed = start, step, closed

    def add(self, amount: int) -> int:
        self.value += amount * self.step
        return self.value

    def echo(self, value: Any = None, *, other: Any = None) -> Any:
        return value if other is None else (value, other)

    def fail(self, code: int) -> None:
        self._deeper_inside(code)

    def _deeper_inside(self, code: int) -> None:
        raise Oops(code)

    def pid(self) -> int:
        return os.getpid()

    def modules(self) -> list[str]:
        return sorted({name.partition(".")[0] for name in sys.modules})

    def sleep(self, seconds: float) -> str:
        time.sleep(seconds)
        return "awake"

    def die(self) -> None:
        os._exit(3)

    def close(self) -> None:
        if self.closed:
            Path(self.closed).write_text(str(os.getpid()))


def where(collective: Collective) -> tuple[int, int]:
    return collective.rank, collective.size


def reduced(collective: Collective, op: str, dtype: str) -> tuple[np.ndarray, bool]:
    """The reduction of [[rank], [1]], and whether the rank's own buffer stayed as it was."""
    own = np.array([[float(collective.rank)], [1.0]], dtype)
    before = own.copy()
    result = collective.all_reduce(own, op=op)
    return result, bool(np.array_equal(own, before)) and not np.shares_memory(own, result)


def broadcasted(collective: Collective, root: int) -> np.ndarray:
    return collective.broadcast(np.full(3, collective.rank, np.float32), root=root)


def in_step(collective: Collective, folder: str) -> int:
    """Files that are there after a barrier: one a rank, however late a rank is."""
    time.sleep(0.2 * (collective.size - 1 - collective.rank))
    Path(folder, f"rank-{collective.rank}").touch()
    collective.barrier()
    return len(list(Path(folder).iterdir()))


def failing(collective: Collective, code: int) -> None:
    if collective.rank == collective.size - 1:
        raise Oops(code)
    collective.barrier()
