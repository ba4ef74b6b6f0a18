"""Calling observers: one typed method an event, and what happens when one raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

from rlcore.errors import ConfigError, nearest
from rlcore.plugins import hookspecs
from rlcore.plugins.errors import HookError, PluginWarning, RLPluginError

if TYPE_CHECKING:
    from rlcore.backend import Executable
    from rlcore.component_graph import ComponentGraph
    from rlcore.plugins.events import BuildStats, Evaluation, RolloutStats, SessionInfo, UpdateStats, WorkerInfo

ON_ERROR = ("raise", "warn", "disable")
DISABLE_HINT = "switch it off with RLCORE_DISABLE_PLUGINS={name}, or go on without it with on_hook_error='disable'"


class Hooks:
    """Each plugin is called by itself, so that an exception has a name.

    :param on_error: ``raise``, ``warn`` or ``disable``, for observers; build hooks always raise.
    """

    def __init__(
        self, manager: pluggy.PluginManager, labels: Mapping[str, tuple[str, str, str]], on_error: str
    ) -> None:
        if on_error not in ON_ERROR:
            raise ConfigError(
                f"on_hook_error '{on_error}' is unknown.{nearest(on_error, ON_ERROR)} It is {', '.join(ON_ERROR)}"
            )
        self._manager, self._labels, self._on_error = manager, labels, on_error
        self._callers: dict[str, list[tuple[str, Callable[..., Any]]]] = {}
        self._disabled: set[str] = set()

    def changed(self) -> None:
        """A plugin was registered."""
        self._callers.clear()

    # -- events: see rlcore.plugins.hookspecs ----------------------------------------------------------------------
    def before_build(self, graph: ComponentGraph, backend: str, mode: str | None) -> None:
        self._call("rlcore_before_build", graph=graph, backend=backend, mode=mode)

    def after_build(self, graph: ComponentGraph, executable: Executable, stats: BuildStats) -> None:
        self._call("rlcore_after_build", graph=graph, executable=executable, stats=stats)

    def on_build_error(self, graph: ComponentGraph | None, error: Exception) -> None:
        self._call("rlcore_on_build_error", graph=graph, error=error)

    def session_start(self, session: SessionInfo) -> None:
        self._call("rlcore_session_start", session=session)

    def session_finish(self, session: SessionInfo, error: BaseException | None) -> None:
        self._call("rlcore_session_finish", session=session, error=error)

    def worker_start(self, worker: WorkerInfo) -> None:
        self._call("rlcore_worker_start", worker=worker)

    def worker_finish(self, worker: WorkerInfo, error: BaseException | None) -> None:
        self._call("rlcore_worker_finish", worker=worker, error=error)

    def after_rollout(self, rollout: RolloutStats) -> None:
        self._call("rlcore_after_rollout", rollout=rollout)

    def after_update(self, update: UpdateStats) -> None:
        self._call("rlcore_after_update", update=update)

    def weights_published(self, version: int) -> None:
        self._call("rlcore_weights_published", version=version)

    def after_checkpoint(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self._call("rlcore_after_checkpoint", path=path, manifest=manifest)

    def after_evaluation(self, name: str, evaluation: Evaluation) -> None:
        self._call("rlcore_after_evaluation", name=name, evaluation=evaluation)

    # --------------------------------------------------------------------------------------------------------------
    def _call(self, hook: str, **arguments: Any) -> None:
        callers = self._callers.get(hook)
        if callers is None:
            callers = self._callers[hook] = self._of_each_plugin(hook)
        for name, call in callers:
            if name in self._disabled:
                continue
            try:
                call(**arguments)
            except (Exception, SystemExit) as e:
                error = self.blame(hook, name, e)
                raises = self._on_error == "raise" or hook not in hookspecs.OBSERVER_HOOKS
                if raises and arguments.get("error") is None:  # else it would hide the error that the hook is told of
                    raise error from e
                if self._on_error == "disable":
                    self._disabled.add(name)
                    error.args = (f"{error.args[0]}\n  it is switched off for the rest of this session",)
                warnings.warn(str(error), PluginWarning, stacklevel=3)

    def _of_each_plugin(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        impls = getattr(self._manager.hook, hook).get_hookimpls()
        plugins = self._manager.get_plugins()
        return [
            (impl.plugin_name, self._manager.subset_hook_caller(hook, plugins - {impl.plugin}))
            for impl in reversed(impls)
        ]

    def blame(self, hook: str, name: str, error: BaseException) -> RLPluginError:
        """The error that names plugin, distribution and hook."""
        kind, plain, label = self._labels[name]
        text = " ".join(str(error).split())
        hint = DISABLE_HINT.format(name=plain) if hook in hookspecs.OBSERVER_HOOKS else f"rlcore doctor {plain}"
        made = HookError(
            f"{kind} '{plain}' ({label}) failed in hook '{hook}':\n"
            f"  {type(error).__name__}: {text}\n  fix:       {hint}",
            kind=kind,
            name=plain,
            dist=label,
        )
        made.hook = hook
        return made
