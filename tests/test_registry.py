"""Components by name: what a config file may say, what is wrong with it, and that nothing of the user's changes."""

import copy
import json
import pickle

import numpy as np
import pytest

import rlcore
from rlcore.component import Component, api
from rlcore.component_specs import check_spec, from_spec
from rlcore.components.exploration import EpsilonGreedy
from rlcore.components.layers import Dense
from rlcore.components.networks import MLP, FlattenObservation, Sequential
from rlcore.components.optimizers import SGD, Adam, RMSProp
from rlcore.components.q_heads import QNetwork
from rlcore.memories.replay import UniformReplay
from rlcore.registry import COMPONENT_KINDS, Registry, builtin_registry
from rlcore.runs.config import merged, nested, resolve

NETWORK = {"name": "sequential", "layers": [{"name": "dense", "units": 8, "activation": "tanh"}, "layer_norm"]}
SETTINGS = {
    "network": NETWORK,
    "policy": {"name": "q_network", "dueling": True},
    "exploration": {"name": "epsilon_greedy", "epsilon": 0.25},
    "replay": "uniform",
    "optimizer": {"name": "rmsprop", "decay": 0.9, "centered": True},
    "learning_rate": 1e-3,
}


class Twice(Component):
    """Takes another component, and a number."""

    def __init__(self, inner: Component, *, times: int = 2, others: list[Component] | None = None):
        super().__init__()
        self.inner, self.times, self.others = inner, times, others or []

    @api
    def __call__(self, x):
        for _ in range(self.times):
            x = self.inner(x)
        return x


# -- the forms of a spec -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "spec", ["mlp", "MLP", {"name": "mlp", "hidden": [3]}, MLP, {"name": MLP}, "rlcore.components.networks:MLP"]
)
def test_name_mapping_class_and_path(spec):
    network = from_spec("network", spec, hidden=[3], activation="relu", observation=None)
    assert isinstance(network, MLP) and [layer.units for layer in network.layers] == [3]


@pytest.mark.parametrize("ending,dump", [(".json", json.dumps), (".yaml", None), (".yml", None)])
def test_files(ending, dump, tmp_path):
    import yaml

    path = tmp_path / f"network{ending}"
    path.write_text((dump or yaml.safe_dump)(NETWORK))
    for given in (path, str(path)):
        network = from_spec("network", given)
        assert isinstance(network, Sequential) and network.layers[0].activation == "tanh"
    spec = check_spec("network", path)
    assert spec.plain() == NETWORK  # what is kept of a run is the content, not the file's name


def test_every_kind_from_one_config(tmp_path):
    agent = rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config=SETTINGS)
    root = agent.graph.root
    assert isinstance(root.q_network, QNetwork) and type(root.q_network.head).__name__ == "DuelingQ"
    flatten, network = root.q_network.network.layers
    assert isinstance(flatten, FlattenObservation) and isinstance(network.layers[0], Dense)
    assert isinstance(root.optimizer, RMSProp) and root.optimizer.decay == 0.9 and root.optimizer.max_grad_norm == 10
    assert isinstance(root.exploration, EpsilonGreedy) and root.exploration.epsilon.value == 0.25
    assert isinstance(agent.config.replay.build(capacity=5, seed=0), UniformReplay)
    for form in (
        {"name": "dqn", **SETTINGS},
        {"name": "DQN", **SETTINGS},
        {"name": "rlcore.agents.dqn:DQN", **SETTINGS},
        {"name": type(root), **SETTINGS},
    ):
        same = rlcore.make_agent(form, env="CartPole-v1", backend="numpy")
        assert np.array_equal(same.get_weights().buffer, agent.get_weights().buffer)
    path = tmp_path / "dqn.json"
    path.write_text(json.dumps({"name": "dqn", **SETTINGS}))
    same = rlcore.make_agent(path, env="CartPole-v1", backend="numpy", config={"learning_rate": 2e-3})
    assert np.array_equal(same.get_weights().buffer, agent.get_weights().buffer)
    assert same.config.learning_rate == 2e-3


def test_options_win_over_what_is_given_and_unwanted_is_left_out():
    optimizer = from_spec("optimizer", {"name": "sgd", "max_grad_norm": 3.0}, learning_rate=0.5, max_grad_norm=9.0, x=1)
    assert isinstance(optimizer, SGD) and optimizer.max_grad_norm == 3.0 and optimizer.learning_rate.value == 0.5
    assert isinstance(from_spec("optimizer", "adam"), Adam)  # its own defaults


def test_components_within_components():
    spec = {"name": Twice, "inner": {"name": "dense", "units": 4}, "others": ["flatten", {"name": "dense", "units": 1}]}
    made = from_spec("layer", spec)
    assert made.inner.units == 4 and made.others[1].units == 1
    again = from_spec("layer", spec)
    assert again.inner is not made.inner  # each build has its own
    with pytest.raises(rlcore.ConfigError, match=r"layer.inner.units: input should be a valid integer.* got 'x'"):
        from_spec("layer", {**spec, "inner": {"name": "dense", "units": "x"}})
    with pytest.raises(rlcore.ConfigError, match=r"layer.others.1.name: a layer needs a 'name'"):
        from_spec("layer", {**spec, "others": ["flatten", {"units": 1}]})


def test_nothing_of_the_users_is_changed():
    settings = {**copy.deepcopy(SETTINGS), "optimizer.decay": 0.8, "executor.x": 1}
    before = copy.deepcopy(settings)
    spec = {"name": "dqn", **copy.deepcopy(SETTINGS)}
    kept = copy.deepcopy(spec)
    resolve(spec, "CartPole-v1", {k: v for k, v in settings.items() if k != "executor.x"}, backend="numpy")
    check_spec("network", spec["network"])
    from_spec("network", spec["network"])
    assert settings == before and spec == kept


def test_a_spec_is_plain_data():
    spec = check_spec("network", NETWORK)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert check_spec("network", spec.plain()) == spec
    assert check_spec("optimizer", "adam").plain() == "adam"


# -- what is wrong, and where ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "settings,text",
    [
        ({"network": "mpl"}, r"setting 'network': unknown network 'mpl'. Did you mean 'mlp'\? Known: mlp, nature_cnn"),
        ({"network": {"name": "mlp", "hiden": [8]}}, r"setting 'network.hiden': .* Did you mean 'hidden'\?"),
        ({"network": {"name": "mlp", "hidden": [8, "x"]}}, r"setting 'network.hidden.1': .* got 'x'"),
        ({"network": {"hidden": [8]}}, r"setting 'network.name': a network needs a 'name'"),
        ({"network": 3}, r"setting 'network': expected a name, a class, .* got 3"),
        ({"network": "nowhere.yaml"}, r"setting 'network': nowhere.yaml can't be read: No such file"),
        ({"network": "no.such:Thing"}, r"setting 'network': 'no.such:Thing' can't be imported: ModuleNotFoundError"),
        ({"network": "json:JSONDecoder"}, r"setting 'network': .* does not derive from rlcore.component.Component"),
        (
            {"network": {"name": "sequential", "layers": [{"name": "dense", "units": 8}, {"name": "dens"}]}},
            r"setting 'network.layers.1': unknown layer 'dens'. Did you mean 'dense'",
        ),
        (
            {"network": {"name": "sequential", "layers": ["flatten", {"name": "dense", "activation": "tanh"}]}},
            r"setting 'network.layers.1.units': layer 'dense' needs the option 'units'",
        ),
        ({"network": {"name": "sequential", "layers": "flatten"}}, r"setting 'network.layers': a list of layers"),
        ({"optimizer": {"name": "adam", "beta1": 0.9}}, r"setting 'optimizer.beta1': .* Did you mean 'beta_1'\?"),
        ({"optimizer.beta1": 0.9}, r"setting 'optimizer.beta1': .* Did you mean 'beta_1'\?"),
        ({"optimizer.beta_1": "high"}, r"setting 'optimizer.beta_1': input should be a valid number.* got 'high'"),
        ({"exploration": "epsilon"}, r"setting 'exploration': unknown exploration .* Did you mean 'epsilon_greedy'"),
        ({"exploration": {"name": "epsilon_greedy", "epsilon": "x"}}, r"exploration 'epsilon_greedy': "),
        ({"replay": "prioritised"}, r"setting 'replay': unknown replay 'prioritised'. Known: uniform"),
        ({"policy": {"name": "q_network", "dueling": "perhaps"}}, r"setting 'policy.dueling': .* got 'perhaps'"),
        ({"nework": "mlp"}, r"unknown setting 'nework'. Did you mean 'network'\?"),
    ],
)
def test_the_error_has_the_full_path(settings, text):
    with pytest.raises(rlcore.ConfigError, match=text):
        rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config=settings)


@pytest.mark.parametrize(
    "agent,text",
    [
        ("dqm", "unknown agent 'dqm'. Did you mean 'dqn'"),
        ({"learning_rate": 1}, "an agent needs a 'name'. Known: dqn"),
        ("gone.yaml", "gone.yaml can't be read"),
        (Dense, "is no agent: it does not derive from rlcore.agents.agent.Agent"),
    ],
)
def test_errors_of_the_agents_spec(agent, text):
    with pytest.raises(rlcore.ConfigError, match=text):
        rlcore.make_agent(agent, env="CartPole-v1", backend="numpy")


def test_a_broken_file_says_where(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("name: [1, 2\nx: y: z")
    with pytest.raises(rlcore.ConfigError, match=r"(?s)bad.yaml is no YAML.*line 2"):
        rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config={"network": str(path)})
    (tmp_path / "bad.json").write_text('{"name": ')
    with pytest.raises(rlcore.ConfigError, match=r"bad.json is no JSON: .*line 1"):
        from_spec("network", tmp_path / "bad.json")


# -- settings ----------------------------------------------------------------------------------------------------
def test_dotted_keys_and_merging():
    assert nested({"a.b.c": 1, "a.d": 2, "e": 3}) == {"a": {"b": {"c": 1}, "d": 2}, "e": 3}
    base = {"optimizer": {"name": "adam", "beta_1": 0.8}, "n": 1}
    assert merged(base, {"optimizer": {"beta_2": 0.9}}) == {
        "optimizer": {"name": "adam", "beta_1": 0.8, "beta_2": 0.9},
        "n": 1,
    }
    assert merged(base, {"optimizer": {"name": "sgd"}})["optimizer"] == {"name": "sgd"}
    assert merged({}, {"optimizer": {"beta_1": 0.5}}, {"optimizer": "adam"})["optimizer"] == {
        "name": "adam",
        "beta_1": 0.5,
    }
    assert base == {"optimizer": {"name": "adam", "beta_1": 0.8}, "n": 1}


def test_options_alone_add_to_the_default():
    config, recipe, _ = resolve("dqn", "CartPole-v1", {"optimizer.beta_1": 0.5}, backend="numpy")
    assert recipe.root().optimizer.beta_1 == 0.5
    assert config.config["optimizer"] == {"name": "adam", "beta_1": 0.5}


def test_a_runs_config_repeats_it(tmp_path):
    options = {"backend": "numpy", "steps": 150, "evaluation_episodes": 1, "seed": 4, "hooks": []}
    settings = {**SETTINGS, "learning_starts_env_steps": 50, "train_every_env_steps": 10}
    one = rlcore.train("dqn", env="CartPole-v1", config=settings, run_dir=tmp_path / "a", **options)
    again = rlcore.train(**rlcore.load_config(tmp_path / "a" / "config.yaml"), run_dir=tmp_path / "b")
    assert np.array_equal(one.agent.get_weights().buffer, again.agent.get_weights().buffer)
    assert (tmp_path / "a" / "config.yaml").read_text() == (tmp_path / "b" / "config.yaml").read_text()
    path = tmp_path / "wrong.yaml"
    path.write_text("agent: dqn\nbackedn: numpy\n")
    with pytest.raises(rlcore.ConfigError, match=r"wrong.yaml: unknown setting 'backedn'. Did you mean 'backend'\?"):
        rlcore.load_config(path)


# -- the registry itself -----------------------------------------------------------------------------------------
def test_registering():
    registry = Registry()
    with registry.provided_by("rl-a 1.0"):
        registry.add("network", "x-net", "a:X")
    with pytest.raises(rlcore.ConfigError, match="network 'X_Net' is registered twice: by rl-a 1.0 .a:X. and rl-b 2.0"):
        with registry.provided_by("rl-b 2.0"):
            registry.add("network", "fine", "b:Y")
            registry.add("network", "X_Net", "b:X")
    assert registry.names("network") == ["x-net"]  # of the second nothing stayed
    with pytest.raises(rlcore.ConfigError, match="no component kind 'netwrk'. Did you mean 'network'"):
        registry.add("netwrk", "y", "a:Y")
    with pytest.raises(rlcore.ConfigError, match="is no dotted path"):
        registry.add("network", "y", MLP)
    registry.add_environment("A/B-v0", "a:B")
    with pytest.raises(rlcore.ConfigError, match="environment 'A/B-v0' is registered twice"):
        registry.add_environment("A/B-v0", "a:C")


def test_all_built_in_names_can_be_imported():
    registry = builtin_registry()
    for kind in COMPONENT_KINDS:
        assert registry.names(kind)
        for name in registry.names(kind):
            assert registry.class_of(kind, name).__doc__


PACK = """
from rlcore.plugins import PluginInfo, hookimpl
class Plugin:
    info = PluginInfo(api_version="1.0")
    @hookimpl
    def rlcore_register_components(self, registry):
        registry.add("network", "wide", "pack_nets:Wide")
        registry.add("agent", "my-dqn", "pack_nets:MyDQN")
        registry.add_environment("pack-test/Easy-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=9)
"""
NETS = """
from rlcore.agents.dqn import DQN
from rlcore.components.networks import MLP
class Wide(MLP):
    def __init__(self, *, width: int = 77):
        super().__init__((width,))
class MyDQN(DQN):
    pass
"""


def test_a_packs_names(site, tmp_path):
    site.add("rl-pack", "components", {"pack": "pack:Plugin"}, pack=PACK, pack_nets=NETS)
    result = rlcore.train(
        "my-dqn",
        env="pack-test/Easy-v0",
        backend="numpy",
        steps=120,
        evaluation_episodes=1,
        config={"network": {"name": "wide", "width": 5}},
        run_dir=tmp_path / "run",
    )
    shapes = {e.path: e.shape for e in result.agent.get_weights().manifest}
    assert shapes["q_network.network.layers.1.layers.0.kernel"] == (4, 5)
    assert result.after.lengths[0] <= 9 and "my-dqn" in (tmp_path / "run" / "config.yaml").read_text()
    with pytest.raises(rlcore.ConfigError, match="Did you mean 'wide'"):
        rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config={"network": "wid"})


def test_a_pack_that_takes_a_name_of_ours_is_left_out(site):
    site.add("rl-thief", "components", {"thief": "thief:Plugin"}, thief=PACK.replace('"wide"', '"mlp"'))
    with pytest.warns(UserWarning, match=r"network 'mlp' is registered twice: by rlcore .* and rl-thief 1.0"):
        session = rlcore.Session()
    assert session.registry.get("network", "mlp").path == "rlcore.components.networks:MLP"
    assert session.registry.get("agent", "my-dqn") is None
