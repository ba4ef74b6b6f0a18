"""The in-process executor: calls run at once, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlcore.errors import ConfigError
from rlcore.executor import Collective, Executor, Future, Handle, Ref, WorkerDied


class LocalFuture(Future):
    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self._value, self._error = value, error

    def result(self, timeout: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def done(self) -> bool:
        return True


class LocalHandle(Handle):
    def __init__(self, executor: LocalExecutor, role: Any, name: str) -> None:
        self._executor, self._role, self._name = executor, role, name

    def call(self, method: str, *args: Any, **kwargs: Any) -> Future:
        if self._role is None:
            return LocalFuture(error=WorkerDied(f"call of '{method}' on {self._name}, which was killed or shut down"))
        resolve = self._executor.resolve
        try:
            values = {k: resolve(v) for k, v in kwargs.items()}
            return LocalFuture(getattr(self._role, method)(*map(resolve, args), **values))
        except Exception as e:
            return LocalFuture(error=e)

    def close(self) -> None:
        role, self._role = self._role, None
        if role is not None:
            role.close()


class LocalCollective(Collective):
    """One rank."""

    rank, size = 0, 1

    def all_reduce(self, buffer: np.ndarray, *, op: str = "mean") -> np.ndarray:
        if op not in ("mean", "sum"):
            raise ConfigError(f"all_reduce: op is 'mean' or 'sum', not '{op}'")
        return np.array(buffer)

    def broadcast(self, buffer: np.ndarray, *, root: int = 0) -> np.ndarray:
        if root != 0:
            raise ConfigError(f"broadcast from rank {root}: there is only rank 0")
        return np.array(buffer)

    def barrier(self) -> None: ...


class LocalExecutor(Executor):
    """One process, a fixed order: every distributed algorithm can be debugged and tested here."""

    name = "local"
    capabilities = frozenset({"tasks", "collectives"})

    def __init__(self) -> None:
        self._handles: list[LocalHandle] = []

    def _start(self, make: Callable[[], Any], name: str) -> Handle:
        handle = LocalHandle(self, make(), name)
        self._handles.append(handle)
        return handle

    def put(self, value: Any) -> Ref:
        return Ref(value)

    def get(self, ref: Ref) -> Any:
        return ref.key

    def resolve(self, value: Any) -> Any:
        return value.key if isinstance(value, Ref) else value

    def wait(self, futures: Sequence[Future], *, count: int = 1, timeout: float | None = None) -> list[Future]:
        return list(futures)

    def kill(self, handle: Handle) -> None:
        """The role is closed: here it would otherwise keep what it holds."""
        if isinstance(handle, LocalHandle):
            handle.close()

    def launch(self, program: Callable[..., Any], *args: Any) -> list[Any]:
        return [program(LocalCollective(), *args)]

    def shutdown(self) -> None:
        handles, self._handles = self._handles, []
        errors = []
        for handle in reversed(handles):  # all of them, whatever one says
            try:
                handle.close()
            except Exception as e:
                errors.append(e)
        if errors:
            raise errors[0]
