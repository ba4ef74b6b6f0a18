"""What the package of every plugin must do: say what it is, import lightly, keep the hook specs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from rlcore.plugins import discovery
from rlcore.plugins.contract import check_hooks
from rlcore.plugins.discovery import COMPONENTS, EXECUTOR, GRAPH_BUILDER, HOOKS
from rlcore.plugins.doctor import probe
from rlcore.plugins.info import PluginInfo
from rlcore.plugins.session import MAKES
from rlcore.testing.checks import Subject, check

ALL = (GRAPH_BUILDER, EXECUTOR, COMPONENTS, HOOKS)
WORDS = {
    GRAPH_BUILDER: {"eager", "static", "gradients"},  # and names of devices
    EXECUTOR: {"tasks", "collectives"},
    COMPONENTS: set(),
    HOOKS: set(),
}


@check("package/name", *ALL)
def name(subject: Subject) -> None:
    raw = subject.found.entry_point.name
    assert re.fullmatch(r"[a-z][a-z0-9_-]*", raw), f"entry point '{raw}': write it as [a-z][a-z0-9_-]*"


@check("package/requires-rlcore", *ALL)
def requires_rlcore(subject: Subject) -> None:
    names = {canonicalize_name(r.name) for r in subject.found.requirements}
    assert subject.found.dist == "rlcore" or "rlcore" in names, (
        f"{subject.found.dist} does not require rlcore; add 'rlcore>=0.1' to the dependencies in its pyproject.toml"
    )


@check("package/info", *ALL)
def info(subject: Subject) -> None:
    found = subject.found
    declared: Any = discovery.load(found).info  # type: ignore[attr-defined]
    assert isinstance(declared, PluginInfo) and declared.summary, "info needs a summary: `rlcore plugins` shows it"
    assert found.info == declared, (
        f"read from the source, info is {found.info}; imported, it is {declared}. Write it with literals in the class"
    )
    for need in declared.needs:
        assert "is no requirement" not in (discovery.unmet(need) or ""), discovery.unmet(need)
    if found.kind is EXECUTOR:
        unknown = set(declared.capabilities) - WORDS[EXECUTOR]
        assert not unknown, f"unknown capabilities {sorted(unknown)}; an executor has {sorted(WORDS[EXECUTOR])}"
    if found.kind is GRAPH_BUILDER:
        assert set(declared.capabilities) & {"eager", "static"}, "a graph builder has 'eager', 'static' or both"


@check("package/typed", *ALL)
def typed(subject: Subject) -> None:
    top = subject.found.value.partition(":")[0].partition(".")[0]
    spec = importlib.util.find_spec(top)
    places = [Path(p) for p in (spec.submodule_search_locations or ())] if spec else []
    assert not places or any((place / "py.typed").exists() for place in places), f"package {top} has no py.typed"


@check("package/hooks", *ALL)
def hooks(subject: Subject) -> None:
    found = subject.found
    requires = [MAKES[found.kind]] if found.kind in MAKES else []
    check_hooks(discovery.load(found)(), kind=found.kind.words, name=found.name, label=found.label, requires=requires)


@check("package/light-import", *ALL)
def light_import(subject: Subject) -> None:
    report, died, noise = probe(subject.found, False, 120)
    assert "load_ms" in report, (
        f"it could not be loaded in a process of its own: {report.get('error') or died}\n{noise}"
    )
    eager = ", ".join(report["eager"])
    assert not eager, f"the entry point's module imports {eager}; import it in the hook"
    assert not report["changed"], f"the import of the entry point's module changes {', '.join(report['changed'])}"
    assert report["stage"] == "done", f"{report.get('error') or died}\n{noise}"
    assert not report.get("imported"), f"registering imports {', '.join(report['imported'])}; give dotted paths"


SILENT = "import sys; from rlcore.plugins import discovery as d; d.load(d.pick(d.KINDS[sys.argv[1]], sys.argv[2]))"


@check("package/parallel-import", *ALL)
def parallel_import(subject: Subject) -> None:
    """Four processes load it at once, as the workers of an executor do; none of them prints."""

    def load(_: int) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", SILENT, subject.found.kind.name, subject.name]
        return subprocess.run(words, capture_output=True, text=True, timeout=120)

    with ThreadPoolExecutor(4) as pool:
        for done in pool.map(load, range(4)):
            assert done.returncode == 0, done.stderr
            assert not done.stdout and not done.stderr, f"its import prints: {done.stdout}{done.stderr}"


BLOCKED = """
import importlib.metadata, json, sys
kind, name, wanted = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for module, dists in importlib.metadata.packages_distributions().items():
    if set(dists) & set(wanted):
        sys.modules[module] = None  # importing it fails, as if it were not installed
from rlcore.plugins.errors import PluginLoadError
from rlcore.plugins.session import make_executor, make_graph_builder
try:
    (make_graph_builder if kind == "graph-builder" else make_executor)(name)
except PluginLoadError as e:
    print(json.dumps(str(e)))
"""


@check("package/missing-framework", GRAPH_BUILDER, EXECUTOR)
def missing_framework(subject: Subject) -> None:
    """Without what it requires beyond rlcore, the plugin says how to get it."""
    found = subject.found
    if found.dist == "rlcore":
        return
    of_rlcore = _requirements("rlcore") | {"rlcore"}
    info = found.info or PluginInfo("")
    texts = [str(r) for r in found.requirements] + [p for need in info.needs for p in need.split("|")]
    wanted = {re.split(r"[^\w.-]", text.strip())[0] for text in texts}
    wanted = {w for w in wanted if canonicalize_name(w) not in of_rlcore}
    if not wanted:
        return
    spellings = sorted(wanted | {w.replace("-", "_") for w in wanted} | {w.replace("_", "-") for w in wanted})
    words = [sys.executable, "-c", BLOCKED, found.kind.name, subject.name, json.dumps(spellings)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    last = done.stdout.strip().splitlines()[-1:] or ["null"]
    text = json.loads(last[0]) if last[0].startswith('"') else ""
    assert text, f"without {', '.join(sorted(wanted))} it raises no PluginLoadError:\n{done.stderr[-2000:]}"
    assert "pip install" in text, f"the error does not say how to get what is missing: {text}"


def _requirements(dist: str) -> set[str]:
    import importlib.metadata

    texts = importlib.metadata.requires(dist) or []
    return {canonicalize_name(re.split(r"[^\w.-]", text)[0]) for text in texts if "extra ==" not in text}


@check("runs/short-training", GRAPH_BUILDER, of="gradients")
def short_training(subject: Subject) -> None:
    """The backend learns and acts in a run, chosen by name; its sampler's numbers are NumPy's up to rounding."""
    import tempfile

    import rlcore

    settings = {"hidden": [16], "learning_starts_env_steps": 100, "train_every_env_steps": 50}
    with tempfile.TemporaryDirectory() as folder:
        result = rlcore.train(
            "dqn",
            env="CartPole-v1",
            backend=subject.name,
            steps=300,
            evaluation_episodes=2,
            hooks=[],
            config=settings,
            run_dir=Path(folder, "run"),
        )
        assert result.updates > 0 and result.env_steps >= 300
        names = sorted(p.name for p in Path(folder, "run").iterdir())
        assert "weights.safetensors" in names, names


@check("runs/observes", HOOKS)
def observes(subject: Subject) -> None:
    """A run with the plugin ends with the same weights as one without: an observer changes nothing."""
    import tempfile

    import rlcore

    settings = {"hidden": [16], "learning_starts_env_steps": 100, "train_every_env_steps": 50}
    buffers = []
    for chosen in ([subject.name], []):
        with tempfile.TemporaryDirectory() as folder:
            result = rlcore.train(
                "dqn",
                env="CartPole-v1",
                backend="numpy",
                steps=300,
                evaluation_episodes=2,
                hooks=chosen,
                on_hook_error="raise",
                config=settings,
                run_dir=Path(folder, "run"),
            )
            buffers.append(result.agent.get_weights().buffer)
    assert (buffers[0] == buffers[1]).all(), "a run that it observes ends with other weights"
