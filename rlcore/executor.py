"""The contract of an executor: where roles live and how work reaches them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rlcore.errors import RLCoreError


class ExecutorError(RLCoreError):
    """A role failed, or work on it did not end in time."""


@dataclass(frozen=True)
class Ref:
    """A value that the executor holds. As an argument of a call it stands for the value."""

    key: Any


class Future(ABC):
    """The result of a call, there or to come."""

    @abstractmethod
    def result(self, timeout: float | None = None) -> Any:
        """Wait for it.

        :param timeout: seconds; None waits for ever.
        :raises Exception: what the role raised.
        :raises ExecutorError: after ``timeout``, saying what was waited for.
        """

    @abstractmethod
    def done(self) -> bool: ...


class Handle(ABC):
    """A role that was spawned."""

    @abstractmethod
    def call(self, method: str, *args: Any, **kwargs: Any) -> Future:
        """Run a method of the role. Calls of one handle run in the order in which they were made."""


class Executor(ABC):
    """:cvar capabilities: of ``tasks`` (the methods here) and ``collectives``."""

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[str]]

    @abstractmethod
    def spawn(self, role: type, count: int = 1, *args: Any, **kwargs: Any) -> list[Handle]:
        """Make ``count`` objects of ``role(*args, **kwargs)``."""

    @abstractmethod
    def put(self, value: Any) -> Ref: ...

    @abstractmethod
    def get(self, ref: Ref) -> Any: ...

    @abstractmethod
    def wait(self, futures: Sequence[Future], *, count: int = 1, timeout: float | None = None) -> list[Future]:
        """Those that are done, at least ``count`` unless ``timeout`` seconds pass first."""

    @abstractmethod
    def kill(self, handle: Handle) -> None:
        """End a role at once; later calls of the handle fail."""

    @abstractmethod
    def shutdown(self) -> None:
        """End all roles; a role's ``close`` is called where it has one. May be called twice."""
