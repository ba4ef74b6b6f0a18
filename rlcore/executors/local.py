"""The in-process executor: calls run at once, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlcore.executor import Executor, ExecutorError, Future, Handle, Ref


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
    def __init__(self, executor: LocalExecutor, role: Any) -> None:
        self._executor, self._role = executor, role

    def call(self, method: str, *args: Any, **kwargs: Any) -> Future:
        if self._role is None:
            return LocalFuture(error=ExecutorError(f"call of '{method}' on a role that was killed"))
        try:
            return LocalFuture(getattr(self._role, method)(*map(self._executor.resolve, args), **kwargs))
        except Exception as e:
            return LocalFuture(error=e)

    def close(self) -> None:
        role, self._role = self._role, None
        if hasattr(role, "close"):
            role.close()


class LocalExecutor(Executor):
    """One process, a fixed order: every distributed algorithm can be debugged and tested here."""

    name = "local"
    capabilities = frozenset({"tasks"})

    def __init__(self) -> None:
        self._handles: list[LocalHandle] = []

    def spawn(self, role: type, count: int = 1, *args: Any, **kwargs: Any) -> list[Handle]:
        handles = [LocalHandle(self, role(*args, **kwargs)) for _ in range(count)]
        self._handles += handles
        return list(handles)

    def put(self, value: Any) -> Ref:
        return Ref(value)

    def get(self, ref: Ref) -> Any:
        return ref.key

    def resolve(self, value: Any) -> Any:
        return value.key if isinstance(value, Ref) else value

    def wait(self, futures: Sequence[Future], *, count: int = 1, timeout: float | None = None) -> list[Future]:
        return list(futures)

    def kill(self, handle: Handle) -> None:
        if isinstance(handle, LocalHandle):
            handle.close()

    def shutdown(self) -> None:
        for handle in self._handles:
            handle.close()
        self._handles.clear()
