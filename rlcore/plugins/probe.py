"""``python -m rlcore.plugins.probe KIND NAME FILE [--deep]``: load one plugin in this process, write what happened.

Run in a process of its own, so that a plugin that crashes, hangs, exits or prints harms nobody. What is written grows
with each stage: a process that dies leaves the stages that it passed.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import threading
import time
import warnings
from typing import Any

HEAVY = ("torch", "tensorflow", "jax", "ray", "horovod", "pandas", "keras", "mxnet", "cupy")


def main(kind_name: str, name: str, path: str, deep: bool) -> None:
    import numpy as np

    from rlcore.errors import RLCoreError
    from rlcore.plugins import discovery
    from rlcore.plugins.session import bare_session, make_executor, make_graph_builder

    report: dict[str, Any] = {"stage": "load"}

    def write(**facts: Any) -> None:
        report.update(facts)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(report, file)
        os.replace(path + ".new", path)

    def state() -> dict[str, Any]:
        return {
            "environment variables": dict(os.environ),
            "warning filters": list(warnings.filters),
            "logging": (logging.root.level, list(logging.root.handlers)),
            "random": random.getstate(),
            "NumPy's random": str(np.random.get_state()),
            "threads": threading.active_count(),
        }

    write()
    kind = discovery.KINDS[kind_name]
    try:
        found = discovery.pick(kind, name)
        before, modules, start = state(), set(sys.modules), time.perf_counter()
        plugin_class: Any = discovery.load(found)
        took = time.perf_counter() - start
        after = state()
        tops = {m.partition(".")[0] for m in set(sys.modules) - modules}
        write(
            stage="make",
            load_ms=round(1000 * took, 1),
            eager=sorted(tops & set(HEAVY)),
            changed=[what for what in before if before[what] != after[what]],
            declared=sorted(plugin_class.info.capabilities),
            api=plugin_class.info.api_version,
        )
        start = time.perf_counter()
        if kind is discovery.GRAPH_BUILDER:
            made: Any = make_graph_builder(name)
            write(capabilities=sorted(made.capabilities.names))
        elif kind is discovery.EXECUTOR:
            made = make_executor(name)
            write(capabilities=sorted(made.capabilities))
            made.shutdown()
        else:
            session = bare_session()  # not with every other pack and what those bring along
            for core in (f for f in discovery.scan(discovery.COMPONENTS) if f.dist == "rlcore"):
                session.add(core)  # a name of rlcore's own can't be taken
            modules = set(sys.modules)
            session.add(found)
            if kind is discovery.COMPONENTS:
                paths = [r.path for r in session.registry.everything(found.label)]
                imported = [path for path in paths if path.partition(":")[0] in set(sys.modules) - modules]
                write(imported=imported, registered=len(paths))
        write(stage="doctor", make_ms=round(1000 * (time.perf_counter() - start), 1), hooks=_hooks(plugin_class))
        checks = []
        if "rlcore_doctor" in report["hooks"]:
            session = bare_session()
            session.add(found)
            for result in session.manager.hook.rlcore_doctor(deep=deep):
                checks += [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in result or ()]
        write(stage="done", checks=checks)
    except (Exception, SystemExit) as e:
        text = str(e) if isinstance(e, RLCoreError) else f"{type(e).__name__}: {e}"
        write(error=text, error_type=type(e).__name__)


def _hooks(plugin_class: type) -> list[str]:
    from rlcore.plugins.hookspecs import ALL_HOOKS

    return [name for name in ALL_HOOKS if getattr(getattr(plugin_class, name, None), "rlcore_impl", None)]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], "--deep" in sys.argv[4:])
