"""Plugins by name: found lazily, errors that say what to do."""

import importlib.metadata

import pytest

from rlcore.backend import GraphBuilder
from rlcore.executors.local import LocalExecutor
from rlcore.plugins import manager
from rlcore.plugins.errors import PluginConflict, PluginContractError, PluginLoadError, PluginNotFound


@pytest.mark.parametrize("name", ["numpy", "torch", "tf"])
def test_backends_are_found_by_name(name):
    builder = manager.make_graph_builder(name)
    assert isinstance(builder, GraphBuilder) and builder.name == name
    assert manager.make_graph_builder(builder) is builder


def test_the_local_executor_is_found_by_name():
    assert isinstance(manager.make_executor("local"), LocalExecutor)
    with pytest.raises(Exception, match="executor 'local' has no option 'address'"):
        manager.make_executor("local", {"address": "auto"})


def test_listing_knows_distributions():
    found = {e.name: e.dist.name for e in manager.find("graph builder")}
    assert found == {"numpy": "rlcore", "torch": "rl-torch", "tf": "rl-tf"}


class Dist:
    version, requires = "1.0", ()

    def __init__(self, name):
        self.name = name


def entry(name, value, dist="rl-other", group="rlcore.graph_builders"):
    made = importlib.metadata.EntryPoint(name, value, group)
    vars(made)["dist"] = Dist(dist)
    return made


@pytest.fixture
def only(monkeypatch):
    """Pretend that these entry points are all there is."""

    def install(*entries):
        monkeypatch.setattr(manager, "entry_points", lambda group: [e for e in entries if e.group == group])

    return install


def test_not_installed_says_how_to_get_it(only):
    only(entry("numpy", "rlcore.backends.numpy.plugin:NumpyPlugin", "rlcore"))
    with pytest.raises(
        PluginNotFound, match=r"(?s)'torch' isn't installed.*pip install 'rl-torch'.*numpy \(rlcore 1.0\)"
    ):
        manager.make_graph_builder("torch")
    with pytest.raises(LookupError, match="Did you mean 'numpy'"):
        manager.make_graph_builder("nunpy")


def test_no_metadata_at_all(only):
    only()
    with pytest.raises(PluginNotFound, match="pip install -e"):
        manager.make_graph_builder("numpy")


def test_two_packages_one_name(only):
    only(entry("x", "a:A", "pkg-a"), entry("x", "b:B", "pkg-b"))
    with pytest.raises(PluginConflict, match=r"pkg-a 1.0 \(a:A\), pkg-b 1.0 \(b:B\)"):
        manager.make_graph_builder("x")


def test_a_broken_one_does_not_stop_another(only):
    good = entry("numpy", "rlcore.backends.numpy.plugin:NumpyPlugin", "rlcore")
    only(good, entry("bad", "no_such_module_at_all:Plugin", "rl-bad"))
    assert manager.make_graph_builder("numpy").name == "numpy"
    with pytest.raises(PluginLoadError, match=r"(?s)'bad' \(rl-bad 1.0.*no_such_module_at_all.*pip install 'rl-bad'"):
        manager.make_graph_builder("bad")


class Silent:
    pass


def test_a_plugin_without_the_hook(only, monkeypatch):
    import sys
    import types

    module = types.ModuleType("silent_plugin")
    module.Silent = Silent
    monkeypatch.setitem(sys.modules, "silent_plugin", module)
    only(entry("silent", "silent_plugin:Silent"))
    with pytest.raises(PluginContractError, match="does not implement rlcore_make_graph_builder"):
        manager.make_graph_builder("silent")
