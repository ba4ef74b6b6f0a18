"""The pages for authors of plugins say what the code does."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import rlcore
from rlcore.backend import Capabilities
from rlcore.backends.numpy.builder import NumpyGraphBuilder
from rlcore.executor import Executor
from rlcore.plugins import hookimpl, hookspecs
from rlcore.plugins import session as sessions
from rlcore.plugins.errors import RLPluginError
from rlcore.plugins.hookspecs import ALL_HOOKS
from rlcore.plugins.session import Session, make_executor, make_graph_builder

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "plugins"


def build():
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_as_the_code_says():
    """`python docs/build.py` writes them anew."""
    for path, text in build().pages().items():
        assert path.read_text() == text, path


def test_every_hook_is_there_with_its_exact_signature():
    """Read from the source of the specs, apart from what writes the page."""
    source = Path(hookspecs.__file__).read_text()
    page = (PAGES / "hook-reference.md").read_text()
    assert len(ALL_HOOKS) == len(re.findall(r"^### rlcore_", page, re.MULTILINE)) >= 16
    for name in ALL_HOOKS:
        written = re.search(rf"^(@hookspec.*)\n(def {name}\(.*\) -> .*):$", source, re.MULTILINE)
        assert f"```python\n{written[1]}\n{written[2]}\n```" in page, name
        assert inspect.getdoc(getattr(hookspecs, name))


def test_every_link_leads_somewhere():
    for page in [*PAGES.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_what_the_page_on_observers_shows_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    [code] = re.findall(
        r"<!-- tested: hooks-in-code -->\n```python\n(.*?)```", (PAGES / "hooks.md").read_text(), re.DOTALL
    )
    exec(compile(code, "hooks.md", "exec"), {})
    assert re.search(r"before training: .* over 2 episodes\nafter training: ", capsys.readouterr().out)


def test_the_config_on_the_page_on_packs_is_right(site):
    import yaml

    [text] = re.findall(r"```yaml\n(.*?)```", (PAGES / "components.md").read_text(), re.DOTALL)
    config = yaml.safe_load(text)["config"]
    site.add("rl-maze", "components", {"maze": "maze:Plugin"}, maze=PACK.format(name="maze-boltzmann"), explore=EXPLORE)
    agent = rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config=config)
    assert agent.graph.root.exploration.temperature == 0.5


PACK = """
from rlcore.plugins import PluginInfo, hookimpl
class Plugin:
    info = PluginInfo(api_version="1.0")
    @hookimpl
    def rlcore_register_components(self, registry):
        registry.add("exploration", "{name}", "explore:Boltzmann")
        registry.add("network", "{name}", "explore:Boltzmann")
"""
EXPLORE = """
from rlcore.components.exploration import EpsilonGreedy
class Boltzmann(EpsilonGreedy):
    def __init__(self, temperature: float = 1.0):
        super().__init__(0.1)
        self.temperature = temperature
"""


def test_every_mark_of_a_known_fault_is_one():
    """A misspelt id would cover nothing."""
    import json

    known = set(json.loads((ROOT / "tests" / "public_bugs.json").read_text()))
    for path in [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/*/tests/test_*.py")]:
        for mark in re.findall(r'public_bug\("([^"]+)"\)', path.read_text()):
            assert mark in known, f"{path.name}: {mark}"


# -- error texts -------------------------------------------------------------------------------------------------
def rows():
    text = (PAGES / "errors.md").read_text()
    return re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", text, re.MULTILINE)


def pattern(text):
    """Words in capitals stand for names; (...) for anything."""
    out = re.escape(text)
    for word in ("NAME", "OTHER", "PATH", "DIST", "FOLDER"):
        out = re.sub(rf"\b{word}\b", r"[^'\\n]+?", out)
    return out.replace(r"\(\.\.\.\)", r"\(.*\)").replace("process\\ 1", "process\\ \\d+").replace(r"0\.1\.0", r"[\d.]+")


class Act(NumpyGraphBuilder):
    name = "act"
    capabilities = Capabilities(modes=("eager",), gradients=False, devices=("cpu",))


class Nothing(Executor):
    name = "nothing"
    capabilities = frozenset()

    def shutdown(self): ...


def observer(source):
    scope = {"hookimpl": hookimpl}
    exec("class P:\n" + "".join(f"    {line}\n" for line in source.splitlines()), scope)
    return scope["P"]()


@pytest.fixture
def produced(site, monkeypatch, tmp_path):
    """(type, text) of every error that the page speaks of, brought about by what a user or author does."""
    import json
    import pickle
    import warnings

    from rlcore.plugins import discovery

    seen = []

    def attempt(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                call()
            except rlcore.RLCoreError as e:
                seen.append((type(e).__name__, str(e)))
        seen.extend(("PluginConflict", str(w.message)) for w in caught)

    head = "from rlcore.plugins import PluginInfo, hookimpl\nclass Plugin:\n    info = PluginInfo(api_version='1.0')\n"
    make = head + "    @hookimpl\n    def rlcore_make_graph_builder(self): "
    sources = {
        "old": ("", ["rlcore<0.1"]),
        "newapi": (head.replace("1.0", "2.0"), []),
        "needs": (make.replace("'1.0'", "'1.0', needs=('no-such-thing',)") + "return 1", []),
        "fails": ("import no_such_module", []),
        "noinfo": ("class Plugin: pass", []),
        "nohook": (head, []),
        "none": (make + "return None", []),
        "thing": (make + "return 3", []),
        "off": ("", []),
    }
    for name, (source, requires) in sources.items():
        site.add(f"rl-{name}", "graph_builders", {name: f"m_{name}:Plugin"}, requires=requires, **{f"m_{name}": source})
    site.add("rl-module", "graph_builders", {"module": "whole"}, whole="")
    site.add("pkg-a", "graph_builders", {"both": "a:Plugin"}, a="")
    site.add("pkg-b", "graph_builders", {"both": "b:Plugin"}, b="")
    project = tmp_path / "young"
    project.mkdir()
    (project / "pyproject.toml").write_text('[project.entry-points."rlcore.graph_builders"]\nyounger = "y:P"\n')
    info = site.add("rl-young", "graph_builders", {"young": "y:P"}, y="")
    (info / "direct_url.json").write_text(json.dumps({"url": f"file://{project}", "dir_info": {"editable": True}}))
    monkeypatch.setenv("RLCORE_DISABLE_PLUGINS", "off")
    for name in (*sources, "module", "both", "younger", "nunpy", "ray", "horovod"):
        attempt(lambda n=name: make_graph_builder(n))
    attempt(lambda: make_executor("ray"))
    with monkeypatch.context() as m:
        scan = discovery.scan
        m.setattr(discovery, "scan", lambda kind: [f for f in scan(kind) if f.name != "torch"])
        attempt(lambda: make_graph_builder("torch"))
        m.setattr(discovery, "scan", lambda kind: [])
        attempt(lambda: make_graph_builder("numpy"))
    for source in (
        "@hookimpl\ndef rlcore_on_updaet(self): pass",
        "def rlcore_after_update(self): pass",
        "@hookimpl\ndef rlcore_after_update(self, updat): pass",
        "@hookimpl\ndef rlcore_after_update(self, *, update): pass",
        "@hookimpl\ndef rlcore_after_update(self, **kwargs): pass",
    ):
        attempt(lambda s=source: Session([observer(s)]))
    attempt(lambda: Session([Act]))
    site.add("rl-thief", "components", {"thief": "thief:Plugin"}, thief=PACK.format(name="mlp"))
    attempt(Session)
    monkeypatch.setenv("RLCORE_DISABLE_PLUGINS", "thief")
    failing = observer("@hookimpl\ndef rlcore_after_update(self): 1 / 0")
    attempt(lambda: Session([failing]).hooks.after_update(None))
    info = site.add("rl-watch", "hooks", {"watch": "watch:Plugin"}, watch=head)
    session = Session(["watch"])
    data = pickle.dumps(session)
    del sessions._open[session.id]
    (info / "METADATA").write_text((info / "METADATA").read_text().replace("Version: 1.0", "Version: 1.1"))
    attempt(lambda: pickle.loads(data))
    attempt(lambda: session.executor(Nothing()).require("tasks", by="the off-policy workflow"))
    attempt(lambda: rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", mode="static", hooks=[]))
    attempt(lambda: rlcore.make_agent("dqn", env="CartPole-v1", backend=Act(), hooks=[]))
    return seen


def test_every_error_text_of_the_page_is_produced(produced):
    assert len(rows()) >= 25
    for error, text, _ in rows():
        texts = [t for kind, t in produced if kind == error]
        assert any(re.search(pattern(text), t) for t in texts), f"{error}: {text}\nproduced:\n" + "\n".join(texts)


def test_every_kind_of_plugin_error_is_on_the_page():
    def below(cls):
        return {c.__name__ for c in cls.__subclasses__()} | {n for c in cls.__subclasses__() for n in below(c)}

    assert below(RLPluginError) == {error for error, _, _ in rows()} - {"UnsupportedCapability"}
