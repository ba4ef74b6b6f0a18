"""What ``rlcore new-plugin`` writes, as a stranger gets it: wheels, in a fresh environment, used by name."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import rlcore
from rlcore.cli.new_plugin import write_plugin
from rlcore.errors import ConfigError

ROOT = Path(rlcore.__file__).parents[1]
NAMES = {"graph-builder": "mynp", "executor": "procs", "components": "maze", "hooks": "jsonl"}
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("RLCORE_", "PYTHON", "VIRTUAL_ENV"))}


def run(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, env=CLEAN, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """Folder of the scripts of an environment with rlcore's wheel and the wheels of the four new plugins."""
    folder = tmp_path_factory.mktemp("fresh")
    projects = [write_plugin(name, kind, folder / "projects") for kind, name in NAMES.items()]
    wheels = folder / "wheels"
    # The sources are copied: a build leaves nothing behind in the checkout.
    source = folder / "rlcore-source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "rlcore", source / "rlcore", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps"]
    run([*pip, "--no-build-isolation", "-w", wheels, source, *projects])
    venv.create(folder / "env", with_pip=True)
    scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    install = [scripts / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q", "--find-links", wheels]
    new = [f"rl-{name}" for name in NAMES.values()]
    run([*install, "-c", ROOT / "constraints.txt", "rlcore[testing]", *new], cwd=folder)
    return scripts


def test_they_are_listed_and_healthy(fresh, tmp_path):
    listed = json.loads(run([fresh / "rlcore", "plugins", "--json"], cwd=tmp_path))
    rows = {(r["kind"], r["name"]): r for r in listed["plugins"]}
    for kind, name in NAMES.items():
        row = rows[kind, name]
        assert (row["distribution"], row["version"], row["status"]) == (f"rl-{name}", "0.1.0", "ready")
        assert row["api"] == "1.0" and not row["editable"] and row["summary"]
    assert rows["graph-builder", "numpy"]["distribution"] == "rlcore"
    assert "pip install 'rl-torch'" in listed["not_installed"].values()
    diagnoses = json.loads(run([fresh / "rlcore", "doctor", "--json"], cwd=tmp_path))
    assert len(diagnoses) == 7 and all(d["ok"] for d in diagnoses)


def test_all_four_in_one_short_run(fresh, tmp_path):
    words = "train dqn --env maze/Corridor-v0 --backend mynp --executor procs --steps 2000 --evaluation-episodes 5"
    settings = [
        "network=maze-residual",
        "network.units=16",
        "exploration.name=maze-boltzmann",
        "exploration.temperature=0.5",
        "learning_starts_env_steps=200",
        "learning_rate=3e-3",
        "target_update=soft",
        "target_tau=0.05",
    ]
    words = [*words.split(), *(w for s in settings for w in ("--set", s)), "--run-dir", "run"]
    print(run([fresh / "rlcore", *words], cwd=tmp_path))
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["after"]["mean"] > result["before"]["mean"] and result["after"]["mean"] > 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert {(p["kind"], p["distribution"]) for p in manifest["plugins"]} == {
        ("components", "rlcore"),
        *((kind, f"rl-{name}") for kind, name in NAMES.items()),
    }
    events = [json.loads(line) for line in (tmp_path / "run" / "jsonl.jsonl").read_text().splitlines()]
    kinds = [e["event"] for e in events]
    assert kinds[-1] == "finish" and events[-1]["error"] is None
    assert kinds.count("evaluation") == 2 and {"build", "start", "episode", "update"} <= set(kinds)
    # The settings of the run repeat it.
    again = [fresh / "rlcore", "train", "--config", "run/config.yaml", "--run-dir", "again"]
    run(again, cwd=tmp_path)
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("run", "again")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("kind", NAMES)
def test_it_passes_its_checks(kind, fresh, tmp_path):
    outcomes = json.loads(run([fresh / "rlcore", "check-plugin", f"{kind}/{NAMES[kind]}", "--json"], cwd=tmp_path))
    assert len(outcomes) > 7 and {o["status"] for o in outcomes} == {"passed"}


@pytest.mark.parametrize("kind", NAMES)
def test_its_own_tests_pass(kind, fresh, tmp_path):
    folder = fresh.parents[1] / "projects" / f"rl-{NAMES[kind]}"
    done = run([fresh / "python", "-m", "pytest", "-q", "tests", "-k", "not conformance"], cwd=folder)
    assert "passed" in done


def test_what_it_writes_is_clean(tmp_path):
    for kind, name in NAMES.items():
        write_plugin(name, kind, tmp_path)
    config = ["--isolated", "--line-length", "120"]
    run([sys.executable, "-m", "ruff", "check", *config, "--select", "E,F,UP,B,RUF", tmp_path])
    run([sys.executable, "-m", "ruff", "format", "--check", *config, tmp_path])


def test_mistakes(tmp_path):
    with pytest.raises(ConfigError, match=r"Did you mean 'executor'\?"):
        write_plugin("x", "executer", tmp_path)
    with pytest.raises(ConfigError, match="lower-case"):
        write_plugin("My Plugin", "hooks", tmp_path)
    write_plugin("x", "hooks", tmp_path)
    with pytest.raises(ConfigError, match="there already"):
        write_plugin("x", "hooks", tmp_path)
