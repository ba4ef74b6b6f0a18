"""Hooks: refused where they can't be called, called where they should be, and blamed when they raise."""

import inspect
import pickle
import warnings

import pytest

import rlcore
from rlcore.component import Component, api
from rlcore.plugins import hookimpl, hookspecs
from rlcore.plugins import session as sessions
from rlcore.plugins.errors import HookError, PluginContractError, PluginSetMismatch, PluginWarning
from rlcore.plugins.hookspecs import ALL_HOOKS, OBSERVER_HOOKS
from rlcore.plugins.session import Session

SETTINGS = {"hidden": [8], "learning_starts_env_steps": 50, "train_every_env_steps": 25}


def train(tmp_path, hooks, **options):
    return rlcore.train(
        "dqn",
        env="CartPole-v1",
        backend="numpy",
        steps=200,
        evaluation_episodes=1,
        config=SETTINGS,
        hooks=hooks,
        run_dir=tmp_path / "run",
        **options,
    )


class Everything:
    """Implements every hook; notes what it is given."""

    def __init__(self):
        self.calls = []


def _note(name):
    arguments = list(inspect.signature(getattr(hookspecs, name)).parameters)
    given, scope = ", ".join(f"{a}={a}" for a in arguments), {}
    exec(f"def {name}(self, {', '.join(arguments)}): self.calls.append(('{name}', dict({given})))", scope)
    return hookimpl(scope[name])


for _name in (*OBSERVER_HOOKS, "rlcore_before_build", "rlcore_after_build", "rlcore_on_build_error"):
    setattr(Everything, _name, _note(_name))


def test_every_event_of_a_run_in_its_order(tmp_path):
    seen = Everything()
    result = train(tmp_path, [seen])
    names = [name for name, _ in seen.calls]
    assert set(names) == {n for n in ALL_HOOKS if hasattr(Everything, n)} - {"rlcore_on_build_error"}
    first = {name: names.index(name) for name in reversed(names)}
    assert names[0] == "rlcore_before_build" and names[-1] == "rlcore_session_finish"
    assert first["rlcore_session_start"] < first["rlcore_after_evaluation"] < first["rlcore_worker_start"]
    assert first["rlcore_worker_start"] < first["rlcore_after_rollout"] < first["rlcore_after_update"]
    assert first["rlcore_after_update"] < first["rlcore_weights_published"] < first["rlcore_after_checkpoint"]
    given = {name: arguments for name, arguments in seen.calls}  # of the last call
    start, finish = given["rlcore_session_start"]["session"], given["rlcore_session_finish"]
    assert start.config["steps"] == 200 and start.run_dir == result.run_dir and finish["error"] is None
    assert any(p.startswith("graph-builder numpy rlcore") for p in start.plugins)
    assert given["rlcore_after_update"]["update"].updates == result.updates
    assert given["rlcore_after_update"]["update"].metrics["loss"] >= 0
    assert given["rlcore_after_rollout"]["rollout"].total_env_steps == result.env_steps
    assert sum(a["rollout"].env_steps for n, a in seen.calls if n == "rlcore_after_rollout") == result.env_steps
    versions = [a["version"] for n, a in seen.calls if n == "rlcore_weights_published"]
    assert versions == sorted(set(versions)) and len(versions) == names.count("rlcore_after_update")
    assert given["rlcore_after_checkpoint"]["path"].exists()
    assert given["rlcore_after_checkpoint"]["manifest"]["env_steps"] == result.env_steps
    assert [a["name"] for n, a in seen.calls if n == "rlcore_after_evaluation"] == ["before", "after"]
    stats = given["rlcore_after_build"]["stats"]
    assert stats.components > 5 and stats.parameters > 40 and stats.calls > 0 and stats.build_seconds > 0
    workers = [(n, a["worker"].role, a["worker"].index) for n, a in seen.calls if "worker" in a]
    assert ("rlcore_worker_start", "Sampler", 0) in workers and ("rlcore_worker_finish", "Learner", 0) in workers


def test_the_finish_is_told_of_an_error(tmp_path):
    class Fails:
        @hookimpl
        def rlcore_after_update(self):
            raise KeyError("mine")

    seen = Everything()
    with pytest.raises(HookError, match="'Fails' .given in code. failed in hook 'rlcore_after_update'") as e:
        train(tmp_path, [seen, Fails()])
    assert isinstance(e.value.__cause__, KeyError) and e.value.hook == "rlcore_after_update"
    assert "on_hook_error='disable'" in str(e.value)
    assert seen.calls[-1][0] == "rlcore_session_finish" and isinstance(seen.calls[-1][1]["error"], HookError)
    assert (tmp_path / "run" / "config.yaml").exists()


@pytest.mark.parametrize("how,calls", [("warn", 2), ("disable", 1)])
def test_observers_can_be_passed_over(how, calls, monkeypatch):
    class Fails:
        calls = 0

        @hookimpl
        def rlcore_weights_published(self, version):
            Fails.calls += 1
            raise ValueError(f"at {version}")

    other = Everything()
    for given in ({"on_hook_error": how}, {}):
        Fails.calls = 0
        monkeypatch.setenv("RLCORE_ON_HOOK_ERROR", how)
        session = Session([Fails(), other], **given)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session.hooks.weights_published(1)
            session.hooks.weights_published(2)
        texts = [str(w.message) for w in caught if w.category is PluginWarning]
        assert Fails.calls == len(texts) == calls and "ValueError: at 1" in texts[0]
        assert ("switched off for the rest" in texts[0]) is (how == "disable")
    assert [a["version"] for _, a in other.calls] == [1, 2, 1, 2]
    with pytest.raises(rlcore.ConfigError, match="Did you mean 'warn'"):
        Session([], on_hook_error="wran")


def test_a_build_hook_always_raises():
    class Fails:
        @hookimpl
        def rlcore_before_build(self, graph):
            raise ValueError("no")

    with pytest.raises(HookError, match="rlcore_before_build"):
        rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", hooks=[Fails()], on_hook_error="warn")


def test_build_errors_are_told():
    class Odd(Component):
        @api
        def __call__(self, x):
            return self.ops.matmul(x, x)

    seen = Everything()
    with pytest.raises(rlcore.BuildError):
        rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", hooks=[seen], config={"network": Odd})
    assert [n for n, _ in seen.calls] == ["rlcore_on_build_error"]
    assert isinstance(seen.calls[0][1]["error"], rlcore.BuildError) and seen.calls[0][1]["graph"] is None


# -- what is refused ---------------------------------------------------------------------------------------------
def plugin(source):
    scope = {"hookimpl": hookimpl}
    body = "\n".join("    " + line for line in source.splitlines())
    exec(f"class P:\n{body}", scope)
    return scope["P"]


@pytest.mark.parametrize(
    "source,text",
    [
        (
            "@hookimpl\ndef rlcore_on_updaet(self): pass",
            "'rlcore_on_updaet' doesn't exist. Did you mean 'rlcore_after_update'",
        ),
        (
            "@hookimpl\ndef rlcore_after_update(self, updat): pass",
            "no argument 'updat'. Did you mean 'update'. It has: update",
        ),
        ("@hookimpl\ndef rlcore_after_update(self, *, update): pass", "argument 'update' is keyword-only"),
        (
            "@hookimpl\ndef rlcore_after_update(self, **kwargs): pass",
            r"\*\*kwargs .*; name the arguments: update",
        ),
        ("@hookimpl\ndef rlcore_after_update(self, *args): pass", r"\*args would stay empty"),
        ("@hookimpl\nasync def rlcore_after_update(self): pass", "is a coroutine"),
        ("@hookimpl\ndef rlcore_after_update(self): yield", "a generator, whose body would never run"),
        ("def rlcore_after_update(self): pass", "lacks @hookimpl"),
        ("@hookimpl(wrapper=True)\ndef rlcore_after_update(self):\n    yield", "can't be wrapped"),
        ("@hookimpl\ndef rlcore_make_graph_builder(self): pass", "not for this kind of plugin; it may only wrap it"),
        ("@hookimpl(specname='rlcore_after_updat')\ndef update(self): pass", "'rlcore_after_updat' doesn't exist"),
    ],
)
def test_a_hook_that_could_not_be_called_is_refused(source, text):
    with pytest.raises(PluginContractError, match=text) as e:
        Session([plugin(source)()])
    assert "hook plugin 'P' (given in code)" in str(e.value)


def test_all_that_is_wrong_is_said_at_once_and_nothing_stays_registered():
    two = plugin("@hookimpl\ndef rlcore_a(self): pass\n@hookimpl\ndef rlcore_after_update(self, x): pass")
    with pytest.raises(PluginContractError, match=r"(?s)rlcore_a.*no argument 'x'"):
        Session([two()])


def test_a_class_is_refused():
    with pytest.raises(PluginContractError, match=r"Everything was given, not an instance of it; write Everything\(\)"):
        Session([Everything])


def test_properties_are_not_run_while_looking_for_hooks():
    Session([plugin("@property\ndef rlcore_trap(self): raise SystemExit")()])


def test_a_driver_hook_can_be_wrapped():
    class Wraps:
        made = None

        @hookimpl(wrapper=True)
        def rlcore_make_graph_builder(self):
            builder = yield
            Wraps.made = builder.name
            return builder

    assert Session([Wraps()]).graph_builder("numpy").name == Wraps.made == "numpy"


def test_a_hook_may_take_fewer_arguments():
    class Few:
        called = False

        @hookimpl
        def rlcore_after_evaluation(self):
            Few.called = True

    Session([Few()]).hooks.after_evaluation("before", None)
    assert Few.called


def test_the_typed_methods_are_the_hooks():
    """Each event has one method, with the arguments of its spec."""
    from rlcore.plugins.hooks import Hooks

    for name in ALL_HOOKS:
        if name in OBSERVER_HOOKS or name.endswith(("_build", "_build_error")):
            method = getattr(Hooks, name.removeprefix("rlcore_"))
            assert list(inspect.signature(method).parameters)[1:] == list(
                inspect.signature(getattr(hookspecs, name)).parameters
            )


# -- by name, and in other processes -----------------------------------------------------------------------------
HOOK = """
from rlcore.plugins import PluginInfo, hookimpl
class Plugin:
    info = PluginInfo(api_version="1.0")
    seen = []
    @hookimpl
    def rlcore_weights_published(self, version):
        Plugin.seen.append(version)
"""


def test_installed_observers_see_every_session_unless_switched_off(site, monkeypatch):
    site.add("rl-watch", "hooks", {"watch": "watch:Plugin"}, watch=HOOK)

    def seen(session):
        import watch

        watch.Plugin.seen.clear()
        session.hooks.weights_published(3)
        return watch.Plugin.seen == [3]

    assert seen(Session()) and seen(Session(["watch"])) and seen(Session(["rl-watch:watch"]))
    assert not seen(Session([]))
    monkeypatch.setenv("RLCORE_DISABLE_PLUGINS", "watch")
    assert not seen(Session())
    monkeypatch.delenv("RLCORE_DISABLE_PLUGINS")
    monkeypatch.setenv("RLCORE_HOOKS", "")
    assert not seen(Session())
    monkeypatch.setenv("RLCORE_HOOKS", "watch")
    assert seen(Session())
    monkeypatch.setenv("RLCORE_HOOKS", "wacth")
    with pytest.raises(LookupError, match="Did you mean 'watch'"):
        Session()


def test_a_session_reopens_with_the_same_plugins_or_not_at_all(site, monkeypatch):
    info = site.add("rl-watch", "hooks", {"watch": "watch:Plugin"}, watch=HOOK)
    session = Session(["watch"])
    session.graph_builder("torch")
    assert pickle.loads(pickle.dumps(session)) is session  # here it is open already
    data, key = pickle.dumps(session), session.id
    del sessions._open[key]  # as in another process
    other = pickle.loads(data)
    assert other is not session and other.id == key and "watch" in [f.name for f in other.plugins.values()]
    assert other.registry.names("network") == session.registry.names("network")
    del sessions._open[key]
    (info / "METADATA").write_text((info / "METADATA").read_text().replace("Version: 1.0", "Version: 1.1"))
    with pytest.raises(PluginSetMismatch, match=r"hook plugin 'watch' of rl-watch 1.0 .* has: rl-watch 1.1"):
        pickle.loads(data)
    monkeypatch.setenv("RLCORE_DISABLE_PLUGINS", "torch")
    (info / "METADATA").write_text((info / "METADATA").read_text().replace("Version: 1.1", "Version: 1.0"))
    with pytest.raises(PluginSetMismatch, match="graph builder 'torch' of rl-torch .* switched off"):
        pickle.loads(data)


def test_two_sessions_share_nothing():
    one, two = Everything(), Everything()
    first, second = Session([one]), Session([two])
    first.hooks.weights_published(1)
    assert len(one.calls) == 1 and not two.calls and first.manager is not second.manager
    assert first.id != second.id
