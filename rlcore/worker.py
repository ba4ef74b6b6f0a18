"""A role in the process where it lives: made there, observed there, closed there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rlcore.plugins.events import WorkerInfo


class Session(Protocol):
    """What a worker and an executor need of :class:`rlcore.Session`, which stands above them."""

    id: str
    hooks: Any

    def executors_that_can(self, capability: str) -> list[str]: ...


@dataclass(frozen=True)
class RoleMaker:
    """Called in the worker, gives the role. It can be pickled if the role and its arguments can.

    :param session: opens in the worker with the driver's plugins; None for no hooks.
    """

    role: type
    index: int
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    session: Session | None

    def __call__(self) -> Worker:
        return Worker(self)


class Worker:
    """Stands for the role: has its methods, and tells the observers of its start and end."""

    def __init__(self, maker: RoleMaker) -> None:
        self._session, self._info = maker.session, None
        if maker.session is not None:
            self._info = WorkerInfo(maker.role.__name__, maker.index, maker.session.id)
            maker.session.hooks.worker_start(self._info)
        try:
            self._role = maker.role(*maker.args, **maker.kwargs)
        except BaseException as e:
            self._finish(e)
            raise

    def __getattr__(self, name: str) -> Any:
        if name == "_role":  # not made yet
            raise AttributeError(name)
        return getattr(self._role, name)

    def close(self) -> None:
        error: BaseException | None = None
        try:
            if hasattr(self._role, "close"):
                self._role.close()
        except BaseException as e:
            error = e
            raise
        finally:
            self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        if self._session is not None and self._info is not None:
            self._session.hooks.worker_finish(self._info, error)
            self._info = None
