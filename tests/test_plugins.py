"""Plugins by name: found lazily, and each thing that can be wrong with one has its own error."""

import json
import re
import subprocess
import sys
import time

import pytest

import rlcore
from rlcore.backend import GraphBuilder
from rlcore.cli.main import app
from rlcore.errors import RLCoreError
from rlcore.executors.local import LocalExecutor
from rlcore.plugins import discovery
from rlcore.plugins.discovery import EXECUTOR, GRAPH_BUILDER, scan
from rlcore.plugins.errors import (
    HookError,
    PluginConflict,
    PluginContractError,
    PluginIncompatible,
    PluginLoadError,
    PluginNotFound,
    PluginWarning,
    RLCoreNotInstalled,
)
from rlcore.plugins.session import Session, make_executor, make_graph_builder

NUMPY_TWIN = """
from rlcore.plugins import PluginInfo, hookimpl
class Twin:
    info = PluginInfo(api_version="1.0", capabilities=("eager", "gradients", "cpu"), summary="a twin of numpy")
    @hookimpl
    def rlcore_make_graph_builder(self):
        from rlcore.backends.numpy.builder import NumpyGraphBuilder
        class TwinBuilder(NumpyGraphBuilder):
            name = "twin"
        return TwinBuilder()
"""
HEAD = """from rlcore.plugins import PluginInfo, hookimpl
class Plugin:
    info = PluginInfo(api_version='1.0')
"""
MAKE = (
    HEAD
    + """    @hookimpl
    def rlcore_make_graph_builder(self):
        """
)
BROKEN = {  # name -> (source, error, what it says)
    "importerror": ("import no_such_module_at_all", PluginLoadError, "No module named 'no_such_module_at_all'"),
    "syntaxerror": ("def (", PluginLoadError, "SyntaxError"),
    "asserts": ("assert 1 == 2, 'no way'", PluginLoadError, "AssertionError: no way"),
    "exits": ("import sys; sys.exit(3)", PluginLoadError, "it tried to end the program"),
    "noattribute": ("x = 1", PluginLoadError, "AttributeError"),
    "instance": ("class P: pass\nPlugin = P()", PluginContractError, "names a P, not a plugin class"),
    "noinfo": ("class Plugin: pass", PluginContractError, r"write info = PluginInfo\(api_version=\"1.0\"\)"),
    "newapi": (HEAD.replace("1.0", "2.0"), PluginIncompatible, "speaks plugin API 2.0; this rlcore speaks 1.0"),
    "arguments": (HEAD + "    def __init__(self, x): pass", PluginContractError, "takes no arguments"),
    "nohook": (HEAD, PluginContractError, "does not implement rlcore_make_graph_builder"),
    "needs": (
        (MAKE + "return 1").replace("'1.0'", "'1.0', needs=('no-such>=2 | torch>=99',), install='rl-needs[all]'"),
        PluginLoadError,
        r"no-such>=2: not installed or torch>=99: 2\S+ is installed\n  fix:       pip install 'rl-needs\[all\]'",
    ),
    "late": (MAKE + "import no_such_framework", PluginLoadError, "No module named 'no_such_framework'"),
    "raises": (
        MAKE + "return 1 / 0",
        HookError,
        r"graph builder 'raises' \(rl-raises 1.0\) failed in hook 'rlcore_make_graph_builder':\n  ZeroDivisionError",
    ),
    "none": (MAKE + "return None", PluginContractError, "rlcore_make_graph_builder returned None"),
    "wrongthing": (MAKE + "return object()", PluginContractError, "made a object, not a rlcore.backend.GraphBuilder"),
    "misspelt": (
        MAKE.replace("graph_builder", "graf_builder") + "return 1",
        PluginContractError,
        "hook 'rlcore_make_graf_builder' doesn't exist. Did you mean 'rlcore_make_graph_builder'",
    ),
    "hangs": (
        "import time; print('hm'); time.sleep(1000)",
        None,
        "within 3 s while being imported.*printed: hm",
    ),
    "aborts": ("import os; os.abort()", None, "signal 6 while being imported"),
}


def add_broken(site, names=BROKEN):
    for name in names:
        module = f"broken_{name}"
        site.add(f"rl-{name}", "graph_builders", {name: f"{module}:Plugin"}, **{module: BROKEN[name][0]})


@pytest.mark.parametrize("name", ["numpy", "torch", "tf"])
def test_backends_are_found_by_name(name):
    builder = make_graph_builder(name)
    assert isinstance(builder, GraphBuilder) and builder.name == name
    assert make_graph_builder(builder) is builder
    assert make_graph_builder(name.upper()).name == name


def test_the_local_executor_is_found_by_name():
    assert isinstance(make_executor("local"), LocalExecutor)
    with pytest.raises(rlcore.ConfigError, match="executor 'local' has no option 'address'"):
        make_executor("local", {"address": "auto"})


def test_listing_knows_distributions():
    assert [(f.name, f.dist) for f in scan(GRAPH_BUILDER)] == [
        ("numpy", "rlcore"),
        ("tf", "rl-tf"),
        ("torch", "rl-torch"),
    ]


def test_what_is_installed_later_is_found_at_once(site):
    with pytest.raises(PluginNotFound):
        make_graph_builder("twin")
    site.add("rl-twin", "graph_builders", {"twin": "twin_plugin:Twin"}, twin_plugin=NUMPY_TWIN)
    assert make_graph_builder("twin").name == "twin"


def test_not_installed_says_how_to_get_it(monkeypatch):
    found = [f for f in scan(GRAPH_BUILDER) if f.name == "numpy"]
    monkeypatch.setattr(discovery, "scan", lambda kind: found if kind is GRAPH_BUILDER else [])
    with pytest.raises(
        PluginNotFound, match=r"(?s)'torch' isn't installed.*pip install 'rl-torch'.*numpy \(rlcore"
    ) as e:
        make_graph_builder("torch")
    assert e.value.kind == "graph builder" and e.value.name == "torch" and e.value.candidates
    with pytest.raises(LookupError, match="Did you mean 'numpy'"):
        make_graph_builder("nunpy")
    with pytest.raises(PluginNotFound, match="'ray' is an executor, not a graph builder. Did you mean"):
        make_graph_builder("ray")
    with pytest.raises(PluginNotFound, match="'numpy' is a graph builder, not an executor"):
        make_executor("numpy")


def test_no_metadata_at_all(monkeypatch):
    monkeypatch.setattr(discovery, "scan", lambda kind: [])
    with pytest.raises(RLCoreNotInstalled, match="pip install -e"):
        make_graph_builder("numpy")


@pytest.mark.parametrize("name", [n for n, b in BROKEN.items() if b[1]])
def test_each_broken_plugin_has_its_own_error(name, site):
    add_broken(site)
    _, error, text = BROKEN[name]
    with pytest.raises(error, match=text) as e:
        make_graph_builder(name)
    assert f"rl-{name} 1.0" in str(e.value) and f"'{name}'" in str(e.value)
    assert e.value.dist == f"rl-{name} 1.0"
    assert isinstance(make_graph_builder("numpy"), GraphBuilder) and isinstance(make_executor("local"), LocalExecutor)


def test_a_run_beside_all_of_them(site, tmp_path):
    """In a process of its own, with broken hooks and packs installed as well."""
    add_broken(site)
    observer = (
        "from rlcore.plugins import PluginInfo, hookimpl\nclass Plugin:\n    info = PluginInfo(api_version='1.0')\n"
    )
    typo = observer + "    @hookimpl\n    def rlcore_on_updaet(self): pass"
    site.add("rl-typo", "hooks", {"typo": "typo:Plugin"}, typo=typo)
    site.add("rl-noisy-pack", "components", {"noisy": "noisy:Plugin"}, noisy="raise ImportError('oh dear')")
    site.add("rl-exit-hook", "hooks", {"exiting": "exiting:Plugin"}, exiting="import sys; sys.exit()")
    words = "train dqn --env CartPole-v1 --backend numpy --steps 150 --evaluation-episodes 1"
    words = [sys.executable, "-m", "rlcore.cli.main", *words.split(), "--run-dir", str(tmp_path / "run")]
    code = f"import sys; sys.argv = {words[2:]!r}; from rlcore.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Did you mean 'rlcore_after_update'?" in done.stderr and "oh dear" in done.stderr
    assert done.stderr.count("warning: ") == 3 and "RLCORE_DISABLE_PLUGINS=typo" in done.stderr


def test_the_plugins_own_requirement_is_read_before_its_import(site):
    site.add("rl-old", "graph_builders", {"old": "old:Plugin"}, requires=["rlcore<0.1"], version="0.9", old="1 / 0")
    with pytest.raises(PluginIncompatible, match=r"rl-old 0.9 needs rlcore<0.1, but rlcore .* was not imported"):
        make_graph_builder("old")
    assert "old" not in sys.modules


def test_an_entry_point_to_a_module(site):
    site.add("rl-module", "graph_builders", {"module": "whole_module"}, whole_module="x = 1")
    with pytest.raises(PluginContractError, match=r"names a module, not a plugin class.\n  fix: "):
        make_graph_builder("module")


def test_two_packages_one_name(site):
    site.add("pkg-a", "graph_builders", {"twin": "twin_plugin:Twin"}, twin_plugin=NUMPY_TWIN)
    site.add("pkg-b", "graph_builders", {"twin": "other:Twin"}, other="1 / 0")
    with pytest.raises(PluginConflict, match=r"pkg-a 1.0 \(twin_plugin:Twin\), pkg-b 1.0 \(other:Twin\)") as e:
        make_graph_builder("twin")
    assert "select it as 'pkg-a:twin'" in str(e.value) and "other" not in sys.modules
    assert make_graph_builder("pkg-a:twin").name == "twin"
    agent = rlcore.make_agent("dqn", env="CartPole-v1", backend="pkg-a:twin", config={"hidden": [4]})
    assert agent.executable.graph
    with pytest.raises(PluginLoadError, match="ZeroDivisionError"):
        make_graph_builder("pkg-b:twin")


def test_switching_off(site, monkeypatch):
    site.add("rl-twin", "graph_builders", {"twin": "twin_plugin:Twin"}, twin_plugin=NUMPY_TWIN)
    for value in ("twin", "other, rl-twin", "rl_twin:twin", "all"):
        monkeypatch.setenv("RLCORE_DISABLE_PLUGINS", value)
        with pytest.raises(PluginNotFound, match="switched off.\n.*RLCORE_DISABLE_PLUGINS"):
            make_graph_builder("twin")
        assert make_graph_builder("numpy").name == "numpy"
    monkeypatch.setenv("RLCORE_DISABLE_PLUGINS", "other")
    assert make_graph_builder("twin").name == "twin"


def test_a_stale_editable_installation_is_named(site, tmp_path):
    project = tmp_path / "rl-young"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project.entry-points."rlcore.graph_builders"]\nyounger = "young:Plugin"\n'
    )
    info = site.add("rl-young", "graph_builders", {"young": "young:Plugin"}, young="")
    (info / "direct_url.json").write_text(json.dumps({"url": f"file://{project}", "dir_info": {"editable": True}}))
    with pytest.raises(PluginNotFound, match="rl-young declares it, but was installed before: pip install -e "):
        make_graph_builder("younger")


def test_a_slow_import_says_what_is_waited_for(site, monkeypatch, capsys):
    monkeypatch.setattr(discovery, "SLOW_SECONDS", 0.1)
    site.add("rl-twin", "graph_builders", {"twin": "slow:Twin"}, slow="import time; time.sleep(0.5)\n" + NUMPY_TWIN)
    make_graph_builder("twin")
    err = capsys.readouterr().err
    assert "still importing graph builder 'twin' (rl-twin 1.0, slow:Twin)" in err and "RLCORE_DISABLE_PLUGINS" in err


def test_two_backends_in_one_session():
    session = Session([])
    names = ["numpy", "torch", "tf", "numpy"]
    assert [session.graph_builder(n).name for n in names] == names
    assert isinstance(session.executor("local"), LocalExecutor)
    assert len(session.fingerprint) == 16 and session.fingerprint == Session.fingerprint.fget(session)


def test_selection_by_environment_variable(monkeypatch):
    monkeypatch.setenv("RLCORE_BACKEND", "numpy")
    agent = rlcore.make_agent("dqn", env="CartPole-v1", config={"hidden": [4]})
    assert agent.recipe.backend == "numpy"
    monkeypatch.setenv("RLCORE_EXECUTOR", "loca")
    with pytest.raises(PluginNotFound, match="Did you mean 'local'"):
        rlcore.train("dqn", env="CartPole-v1", steps=10)


class TestCommands:
    def call(self, *words):
        from typer.testing import CliRunner

        result = CliRunner().invoke(app, list(words))
        assert result.exception is None or isinstance(result.exception, (SystemExit, RLCoreError)), result.exception
        return result

    def test_plugins_imports_nothing(self, site):
        add_broken(site)
        site.add("rl-old", "executors", {"old": "old:Plugin"}, requires=["rlcore<0.1"], version="0.9", old="1 / 0")
        site.add("pkg-a", "hooks", {"twin": "a:Plugin"}, a="1 / 0")
        site.add("pkg-b", "hooks", {"twin": "b:Plugin"}, b="1 / 0")
        code = (
            "import sys, json; before = None\n"
            "from rlcore.cli.plugins import plugins_command\n"
            "plugins_command(True)\n"
            "heavy = [m for m in sys.modules if m.startswith(('broken_', 'rl_', 'torch', 'tensorflow')) or m in 'ab']\n"
            "assert not heavy, heavy"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        rows = {(r["kind"], r["name"]): r for r in json.loads(done.stdout)["plugins"]}
        torch, old = rows["graph-builder", "torch"], rows["executor", "old"]
        assert torch["status"] == "ready" and torch["needs"][0].startswith("torch>=2.8: torch 2.")
        assert torch["api"] == "1.0" and torch["distribution"] == "rl-torch" and "static" in torch["capabilities"]
        assert old["status"] == "incompatible" and old["fix"] == "pip install -U 'rl-old'"
        needs = rows["graph-builder", "needs"]
        assert needs["status"] == "missing" and needs["fix"] == "pip install 'rl-needs[all]'"
        assert rows["hooks", "twin"]["status"] == "conflict"
        assert rows["graph-builder", "newapi"]["status"] == "incompatible"

    def test_plugins_as_a_table(self, site, monkeypatch):
        site.add("rl-twin", "graph_builders", {"twin": "twin_plugin:Twin"}, twin_plugin=NUMPY_TWIN)
        monkeypatch.setenv("RLCORE_DISABLE_PLUGINS", "twin")
        out = self.call("plugins").stdout
        assert "Not installed: executor ray (pip install 'rl-ray')" in out
        [line] = [text for text in out.splitlines() if "rl-twin" in text]
        assert line.split()[:6] == ["graph-builder", "twin", "rl-twin", "1.0", "1.0", "off"]

    @pytest.mark.parametrize("name", BROKEN)
    def test_doctor_survives_every_broken_plugin(self, name, site):
        add_broken(site)
        start = time.monotonic()
        result = self.call("doctor", name, "--time-limit", "3", "--json")
        assert result.exit_code == 1 and time.monotonic() - start < 30
        [diagnosis] = json.loads(result.stdout)
        wrong = " ".join(c["detail"] for c in diagnosis["checks"] if not c["ok"])
        assert re.search(BROKEN[name][2], wrong), wrong

    def test_doctor_of_a_sound_and_a_noisy_one(self, site):
        site.add("rl-twin", "graph_builders", {"twin": "twin_plugin:Twin"}, twin_plugin=NUMPY_TWIN)
        (site.folder / "ray").mkdir()
        (site.folder / "ray" / "__init__.py").write_text("")
        noisy = "import os, ray\nprint('hello'); os.environ['X_NOISY'] = '1'\n" + NUMPY_TWIN
        site.add("rl-noisy", "graph_builders", {"noisy": "noisy:Twin"}, noisy=noisy)
        result = self.call("doctor", "twin", "noisy", "--json")
        sound, loud = json.loads(result.stdout)
        assert sound["ok"] and any("can cpu, eager, gradients" in c["detail"] for c in sound["checks"])
        wrong = {c["name"]: c["detail"] for c in loud["checks"] if not c["ok"]}
        assert "ray" in wrong["light"] and "environment variables" in wrong["clean"]
        assert any(c["detail"] == "printed: hello" for c in loud["checks"])

    def test_doctor_runs_a_plugins_own_checks(self, site):
        source = """
        from rlcore.plugins import PluginInfo, hookimpl
        from rlcore.plugins.events import CheckResult
        class Plugin:
            info = PluginInfo(api_version="1.0", summary="checks itself")
            @hookimpl
            def rlcore_doctor(self, deep):
                yield CheckResult("disk", True, "roomy")
                if deep:
                    yield CheckResult("network", False, "unplugged: plug it in")
        """
        site.add("rl-self", "hooks", {"self-check": "self_check:Plugin"}, self_check=source)
        assert self.call("doctor", "self-check").exit_code == 0
        result = self.call("doctor", "self-check", "--deep")
        assert result.exit_code == 1 and "unplugged: plug it in" in result.stdout and "roomy" in result.stdout

    def test_unknown_names(self):
        with pytest.raises(RLCoreError, match="Did you mean 'numpy'"):
            raise_(self.call("doctor", "nunpy").exception)
        with pytest.raises(RLCoreError, match="pip install 'rl-ray'"):
            raise_(self.call("check-plugin", "ray").exception)
        with pytest.raises(RLCoreError, match="no kind 'executors'"):
            raise_(self.call("check-plugin", "executors/local").exception)


def raise_(error):
    raise error


def test_executors_that_can():
    assert Session([]).executors_that_can("tasks") == ["local"]
    assert [f.info.capabilities for f in scan(EXECUTOR)] == [("tasks", "collectives")]


@pytest.fixture(autouse=True)
def _no_stray_warnings(recwarn):
    yield
    assert not [w for w in recwarn if issubclass(w.category, PluginWarning)]
