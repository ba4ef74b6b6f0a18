"""The contract of an executor: where roles live and how work reaches them.

An executor declares ``tasks``, ``collectives`` or both. What it does not declare raises UnsupportedCapability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from rlcore.errors import RLCoreError, UnsupportedCapability
from rlcore.worker import RoleMaker, Session

CAPABILITIES = ("tasks", "collectives")


class ExecutorError(RLCoreError):
    """A role failed, or work on it did not end in time."""


class WorkerDied(ExecutorError):
    """The process of a role is gone; what it was asked for will never come."""


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
        :raises Exception: what the role raised, of the same type, the role's traceback among its causes or notes.
        :raises WorkerDied: if the role's process ended before it answered.
        :raises ExecutorError: after ``timeout``, saying what was waited for.
        """

    @abstractmethod
    def done(self) -> bool: ...


class Handle(ABC):
    """A role that was spawned."""

    @abstractmethod
    def call(self, method: str, *args: Any, **kwargs: Any) -> Future:
        """Run a method of the role. Calls of one handle run in the order in which they were made.

        Never raises what the role raises: that comes with the future.
        """


class Collective(ABC):
    """What a program sees that runs on every rank at once. Every rank must make the same calls in the same order.

    :ivar rank: 0 to ``size`` - 1.
    """

    rank: int
    size: int

    @abstractmethod
    def all_reduce(self, buffer: np.ndarray, *, op: str = "mean") -> np.ndarray:
        """The ``mean`` or ``sum`` over the ranks, of the same shape and dtype (float32 or float64), on every rank."""

    @abstractmethod
    def broadcast(self, buffer: np.ndarray, *, root: int = 0) -> np.ndarray:
        """The buffer of one rank, on every rank."""

    @abstractmethod
    def barrier(self) -> None:
        """Wait until every rank is here."""


class Executor(ABC):
    """:cvar capabilities: of ``tasks`` and ``collectives``.
    :ivar session: whose hooks run in the workers; set by the session that made the executor.

    For ``tasks`` a plugin writes :meth:`_start`, :meth:`put`, :meth:`get`, :meth:`wait` and :meth:`kill`; for
    ``collectives`` :meth:`launch`.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[str]]
    session: Session | None = None
    _counts: dict[str, int]

    # -- tasks -----------------------------------------------------------------------------------------------------
    def spawn(self, role: type, count: int = 1, *args: Any, **kwargs: Any) -> list[Handle]:
        """Make ``count`` objects of ``role(*args, **kwargs)``.

        :raises Exception: what the constructor raised, here or with the first call.
        """
        self.require("tasks", by=f"spawn({role.__name__})")
        counts = self.__dict__.setdefault("_counts", {})
        handles = []
        for _ in range(count):
            index = counts.get(role.__name__, 0)
            counts[role.__name__] = index + 1
            make = RoleMaker(role, index, args, kwargs, self.session)
            handles.append(self._start(make, f"{role.__name__}-{index}"))
        return handles

    def _start(self, make: Callable[[], Any], name: str) -> Handle:
        """Run ``make()`` in the new worker, keep there the object that it gives, and call its methods.

        When the role ends in order, call the object's ``close()`` in the worker. ``make`` can be pickled.
        """
        self._lacks("tasks")

    def put(self, value: Any) -> Ref:
        """Hold a value, so that it travels once however many calls it is an argument of."""
        self._lacks("tasks")

    def get(self, ref: Ref) -> Any:
        self._lacks("tasks")

    def wait(self, futures: Sequence[Future], *, count: int = 1, timeout: float | None = None) -> list[Future]:
        """Those that are done, at least ``count`` unless ``timeout`` seconds pass first. A failed one is done."""
        self._lacks("tasks")

    def kill(self, handle: Handle) -> None:
        """End a role at once; results that are not there yet and later calls of the handle raise WorkerDied."""
        self._lacks("tasks")

    # -- collectives -----------------------------------------------------------------------------------------------
    def launch(self, program: Callable[..., Any], *args: Any) -> list[Any]:
        """Run ``program(collective, *args)`` on every rank at once.

        :param program: a function of a module, so that other processes can import it.
        :return: what each rank returned, in their order.
        :raises Exception: what a rank raised; the other ranks are ended then.
        """
        self._lacks("collectives")

    # --------------------------------------------------------------------------------------------------------------
    @abstractmethod
    def shutdown(self) -> None:
        """End all roles within 5 s; a role's ``close`` is called where it still can be. May be called twice."""

    def require(self, capability: str, *, by: str) -> None:
        """:raises UnsupportedCapability: unless this executor declares it; names those that do."""
        if capability not in self.capabilities:
            self._lacks(capability, by)

    def _lacks(self, capability: str, by: str = "this call") -> NoReturn:
        others = self.session.executors_that_can(capability) if self.session is not None else []
        hint = f" Executors that can: {', '.join(others)}." if others else ""
        raise UnsupportedCapability(f"executor '{self.name}' can't '{capability}' (needed by {by}).{hint}")
