"""DQN learns, on every backend and mode. A small budget; the full one is benchmarks/cartpole.py."""

import numpy as np
import pytest

import rlcore

# The shipped preset in a shorter run with a smaller network.
SETTINGS = {"hidden": [64, 64], "updates_per_training": 64, "train_every_env_steps": 64, "learning_rate": [2e-3, 0.0]}


@pytest.mark.learning
@pytest.mark.parametrize("seed", [0, 1])
def test_dqn_learns_cartpole(build, seed, tmp_path):
    # Define-by-run TensorFlow takes 8 ms an update, so it gets a smaller budget and goal.
    slow = build == {"backend": "tf", "mode": "eager"}
    steps, goal = (10_000, 60) if slow else (15_000, 150)
    settings = SETTINGS | ({"updates_per_training": 32, "learning_rate": [3e-3, 0.0]} if slow else {})
    result = rlcore.train(
        "dqn",
        env="CartPole-v1",
        steps=steps,
        seed=seed,
        evaluation_episodes=20,
        config=settings,
        run_dir=tmp_path,
        **build,
    )
    assert result.before.mean < 30
    assert result.after.mean >= goal, (result.before, result.after)


@pytest.mark.parametrize(
    "settings", [{"target_update": "hard", "target_sync_env_steps": 50}, {"dueling": True, "loss": "squared"}]
)
@pytest.mark.parametrize("num_envs", [1, 3])
def test_options_run(settings, num_envs, tmp_path):
    common = {"hidden": [8], "learning_starts_env_steps": 50, "train_every_env_steps": 10, "n_step": 2}
    result = rlcore.train(
        "dqn", env="CartPole-v1", backend="numpy", steps=300, num_envs=num_envs, evaluation_episodes=2,
        config=common | settings, run_dir=tmp_path,
    )  # fmt: skip
    assert result.env_steps >= 300 and result.updates >= 20


def test_actor_on_another_backend_than_the_learner(tmp_path):
    kwargs = dict(env="CartPole-v1", steps=300, evaluation_episodes=2, seed=5)
    config = {"hidden": [8], "learning_starts_env_steps": 50, "train_every_env_steps": 10}
    mixed = rlcore.train("dqn", backend="torch", actor_backend="numpy", config=config, run_dir=tmp_path / "a", **kwargs)
    plain = rlcore.train("dqn", backend="torch", config=config, run_dir=tmp_path / "b", **kwargs)
    assert mixed.agent.executable.__class__.__name__ == "NumpyExecutable"
    # The same seed sees the same noise; rounding apart, the same run.
    np.testing.assert_allclose(mixed.agent.get_weights().buffer, plain.agent.get_weights().buffer, rtol=1e-2, atol=1e-3)


def test_vector_environment_given_as_a_function_and_dict_observations(tmp_path):
    import gymnasium as gym
    from gymnasium import spaces

    class Cue(gym.Env):
        """Press the button that the cue names."""

        observation_space = spaces.Dict({"cue": spaces.Discrete(3), "noise": spaces.Box(-1, 1, (2,))})
        action_space = spaces.Discrete(3, start=1)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.left, self.cue = 8, int(self.np_random.integers(3))
            return self.observe(), {}

        def observe(self):
            return {"cue": self.cue, "noise": self.np_random.uniform(-1, 1, 2).astype(np.float32)}

        def step(self, action):
            reward = float(action == self.cue + 1)
            self.cue, self.left = int(self.np_random.integers(3)), self.left - 1
            return self.observe(), reward, False, self.left == 0, {}

    result = rlcore.train(
        "dqn", env=Cue, backend="numpy", steps=3000, num_envs=4, evaluation_episodes=20, run_dir=tmp_path,
        config={"hidden": [32], "learning_rate": 3e-3, "gamma": 0.0, "learning_starts_env_steps": 100,
                "epsilon": [1.0, 0.1, 0.5]},
    )  # fmt: skip
    assert result.after.mean > 7.5  # of 8


def test_own_loop():
    agent = rlcore.make_agent("dqn", env="CartPole-v1", backend="numpy", config={"hidden": [8]})
    single = agent.act(np.zeros(4, np.float32))
    assert np.ndim(single) == 0 and single in (0, 1)
    assert agent.act(np.zeros((5, 4), np.float32), explore=True, progress=0.0).shape == (5,)
    batch = {
        "observation": np.zeros((6, 4), np.float32), "action": np.zeros(6, np.int64), "return": np.ones(6, np.float32),
        "discount": np.zeros(6, np.float32), "next_observation": np.zeros((6, 4), np.float32),
    }  # fmt: skip
    losses = [agent.update(batch)["loss"] for _ in range(200)]
    assert losses[-1] < losses[0] and isinstance(losses[0], float)
    agent.sync()


@pytest.mark.public_bug("BT-02")
def test_a_truncated_episode_is_bootstrapped(tmp_path):
    """Reward 1 for ever, cut every 5 steps: the value is 1 / (1 - gamma), not the sum of 5 rewards."""
    import gymnasium as gym

    class Forever(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (1,))
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.t = 0
            return np.ones(1, np.float32), {}

        def step(self, action):
            self.t += 1
            return np.ones(1, np.float32), 1.0, False, self.t == 5, {}

    result = rlcore.train(
        "dqn", env=Forever, backend="numpy", steps=4000, evaluation_episodes=1, run_dir=tmp_path,
        config={"hidden": [16], "learning_rate": 5e-3, "gamma": 0.9, "target_update": "soft", "target_tau": 0.05,
                "train_every_env_steps": 2, "n_step": 3},
    )  # fmt: skip
    agent = rlcore.make_agent("dqn", env=Forever, backend="numpy", config={"hidden": [16]})
    agent.set_weights(result.agent.get_weights())
    assert abs(agent.executable("q_values", np.ones((1, 1), np.float32)).max() - 10.0) < 0.5


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "native"])
def test_a_function_that_makes_a_vector_environment(mode, tmp_path):
    import gymnasium as gym

    def make():
        if mode == "native":
            return gym.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
        autoreset = gym.vector.AutoresetMode[mode]
        return gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 3, autoreset_mode=autoreset)

    config = {"hidden": [8], "learning_starts_env_steps": 50}
    result = rlcore.train(
        "dqn", env=make, backend="numpy", steps=300, evaluation_episodes=4, config=config, run_dir=tmp_path
    )
    assert result.env_steps >= 300 and len(result.after.returns) == 4


def test_an_environment_object_can_not_serve_training_and_evaluation(tmp_path):
    import gymnasium as gym

    for env in (gym.make("CartPole-v1"), gym.make_vec("CartPole-v1", 2)):
        with pytest.raises(rlcore.ConfigError, match="give a function that makes one"):
            rlcore.train("dqn", env=env, backend="numpy", steps=10, run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_earlier_run_is_not_overwritten(tmp_path):
    kwargs = dict(env="CartPole-v1", backend="numpy", steps=100, evaluation_episodes=1, config={"hidden": [8]})
    rlcore.train("dqn", run_dir=tmp_path, **kwargs)
    before = (tmp_path / "weights.safetensors").read_bytes()
    with pytest.raises(rlcore.ConfigError, match="is not empty"):
        rlcore.train("dqn", run_dir=tmp_path, seed=1, **kwargs)
    assert (tmp_path / "weights.safetensors").read_bytes() == before
