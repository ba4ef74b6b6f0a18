"""The hooks that plugins implement: the reference for their authors.

A plugin is a class, named by an entry point, in a module that imports in under 50 ms and without its framework. An
instance of it is registered with the session; its methods marked ``@hookimpl`` are the hooks, called by keyword::

    from rlcore.plugins import PluginInfo, hookimpl

    class TorchPlugin:
        info = PluginInfo(api_version="1.0", capabilities=("eager", "static", "gradients", "cpu"))

        @hookimpl
        def rlcore_make_graph_builder(self):
            from rl_torch.builder import TorchGraphBuilder    # the framework is imported here

            return TorchGraphBuilder()

An implementation takes any subset of a hook's arguments, by name: a new argument of a hook breaks no plugin. An unknown
hook or argument, a keyword-only argument, ``*args``, ``**kwargs``, a coroutine, and a ``rlcore_`` method without the
mark are refused when the plugin is registered.

Hooks are synchronous, run in the thread that does the work, and are called a few times an update or a rollout, never
per env step. An exception in a driver, registration or build hook ends the call. Of the observing hooks (all others)
the session's ``on_hook_error`` says whether an exception ends the run (``raise``), is shown as a warning (``warn``), or
also switches the plugin's hooks off for the rest of the session (``disable``). In a hook that is told of an error an
exception is only shown as a warning: it must not hide that error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from rlcore.backend import Executable, GraphBuilder
    from rlcore.component_graph import ComponentGraph
    from rlcore.executor import Executor
    from rlcore.plugins.events import (
        BuildStats,
        CheckResult,
        Evaluation,
        RolloutStats,
        SessionInfo,
        UpdateStats,
        WorkerInfo,
    )
    from rlcore.registry import Registry

PROJECT = "rlcore"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


# -- drivers: exactly one plugin answers ---------------------------------------------------------------------------
@hookspec(firstresult=True)
def rlcore_make_graph_builder() -> GraphBuilder | None:
    """Make the graph builder of an entry point in ``rlcore.graph_builders``.

    Called when a backend is first used in a session. Import the framework here. A hook plugin may wrap it
    (``@hookimpl(wrapper=True)``).
    """


@hookspec(firstresult=True)
def rlcore_make_executor(options: Mapping[str, Any]) -> Executor | None:
    """Make an executor of an entry point in ``rlcore.executors``.

    Called once a run, before any worker starts. Raise :class:`rlcore.ConfigError` for an option that is unknown or
    wrong.

    :param options: the user's settings under ``executor``, without its name; a copy.
    """


# -- registration ------------------------------------------------------------------------------------------------
@hookspec(historic=True)
def rlcore_register_components(registry: Registry) -> None:
    """Register components, agents and environments by name.

    Called when a session starts, in each process. Import nothing here: give dotted paths
    (``registry.add("network", "residual", "my_pack.networks:Residual")``), which are imported when they are used.
    """


# -- graph events ------------------------------------------------------------------------------------------------
@hookspec
def rlcore_before_build(graph: ComponentGraph, backend: str, mode: str | None) -> None:
    """A component graph is about to be built. Called in the process that builds it.

    :param mode: ``eager``, ``static`` or None for the backend's default.
    """


@hookspec
def rlcore_after_build(graph: ComponentGraph, executable: Executable, stats: BuildStats) -> None:
    """A component graph was built. Called in the process that built it."""


@hookspec
def rlcore_on_build_error(graph: ComponentGraph | None, error: Exception) -> None:
    """A build failed; the error is raised after this.

    :param graph: None if the component graph could not be assembled.
    """


# -- run events: observers -----------------------------------------------------------------------------------------
@hookspec
def rlcore_session_start(session: SessionInfo) -> None:
    """A training run starts: all settings are checked, the run directory is there. In the driver's process."""


@hookspec
def rlcore_session_finish(session: SessionInfo, error: BaseException | None) -> None:
    """A training run ended. In the driver's process, also after an error, an interrupt included."""


@hookspec
def rlcore_worker_start(worker: WorkerInfo) -> None:
    """A role is about to be made. Called in the worker's process, which may be the driver's."""


@hookspec
def rlcore_worker_finish(worker: WorkerInfo, error: BaseException | None) -> None:
    """A role was closed, or could not be made. Called in the worker's process; not if
    that process was killed."""


@hookspec
def rlcore_after_rollout(rollout: RolloutStats) -> None:
    """Environments were stepped. In the driver's process."""


@hookspec
def rlcore_after_update(update: UpdateStats) -> None:
    """The learner made one or more gradient steps. In the driver's process."""


@hookspec
def rlcore_weights_published(version: int) -> None:
    """Samplers act with new weights from now on. In the driver's process; versions grow."""


@hookspec
def rlcore_after_checkpoint(path: Path, manifest: Mapping[str, Any]) -> None:
    """Something to go on from was written, whole. In the driver's process.

    :param manifest: ``env_steps``, ``updates`` and ``weights_version`` of what was written.
    """


@hookspec
def rlcore_after_evaluation(name: str, evaluation: Evaluation) -> None:
    """Greedy episodes were played. In the driver's process.

    :param name: ``before`` or ``after`` training.
    """


# -- diagnostics -------------------------------------------------------------------------------------------------
@hookspec
def rlcore_doctor(deep: bool) -> Iterable[CheckResult] | None:
    """Checks that ``rlcore doctor`` shows, in a process of their own.

    :param deep: whether checks that take seconds or start processes are wanted.
    """


DRIVER_HOOKS = ("rlcore_make_graph_builder", "rlcore_make_executor")
OBSERVER_HOOKS = (
    "rlcore_session_start",
    "rlcore_session_finish",
    "rlcore_worker_start",
    "rlcore_worker_finish",
    "rlcore_after_rollout",
    "rlcore_after_update",
    "rlcore_weights_published",
    "rlcore_after_checkpoint",
    "rlcore_after_evaluation",
)
ALL_HOOKS = tuple(name for name in list(globals()) if name.startswith("rlcore_"))
