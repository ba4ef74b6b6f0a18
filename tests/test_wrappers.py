"""Wrappers by name, and the Atari protocol on a real game."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import rlcore
from rlcore.component_specs import check_spec
from rlcore.envs.atari import Atari
from rlcore.envs.vector import VectorAdapter, make_vector
from rlcore.envs.wrapped import WrappedEnv
from rlcore.envs.wrappers import FrameStack, OneHotObservation, RescaleAction
from rlcore.plugins import hookimpl


class Count(gym.Env):
    """Observations count up, in one array that is written again and again."""

    def __init__(self, shape=(2, 3), reward=5.0):
        self.observation_space = Box(0, 255, shape, np.uint8)
        self.action_space = Box(-2.0, 4.0, (1,), np.float32)
        self.buffer, self.start, self.reward, self.seen = np.zeros(shape, np.uint8), 0, reward, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.start = self.start % 200 + 10
        self.buffer[...] = self.start
        return self.buffer, {}

    def step(self, action):
        self.seen.append(action)
        self.buffer += 1
        return self.buffer, self.reward, bool(self.buffer.flat[0] % 10 == 5), False, {}


# -- frame stack -------------------------------------------------------------------------------------------------
@pytest.mark.public_bug("AR-19")
@pytest.mark.parametrize("shape,stacked", [((2, 3), (2, 3, 4)), ((2, 3, 2), (2, 3, 8)), ((5,), (20,))])
@pytest.mark.parametrize("padding", ["reset", "zero"])
def test_the_stack_has_the_last_frames(shape, stacked, padding):
    env = FrameStack(Count(shape), padding=padding)
    assert env.observation_space == Box(0, 255, stacked, np.uint8)
    width = stacked[-1] // 4
    for start in (10, 20):  # a second episode starts anew
        kept = [env.reset()[0]]
        for _ in range(3):
            kept.append(env.step(np.zeros(1))[0])
        for t, stack in enumerate(kept):
            first = start if padding == "reset" else 0
            frames = [first] * (3 - t) + list(range(start, start + t + 1))
            assert stack.dtype == np.uint8 and env.observation_space.contains(stack)
            np.testing.assert_array_equal(stack.reshape(-1, 4, width)[0, :, 0], frames)


def test_frame_stack_refuses_what_it_can_not_stack():
    env = gym.make("FrozenLake-v1")
    with pytest.raises(rlcore.ConfigError, match="needs a Box observation, this environment's is Discrete"):
        FrameStack(env)
    with pytest.raises(rlcore.ConfigError, match="num_frames is 0"):
        FrameStack(Count(), 0)


# -- the small ones ----------------------------------------------------------------------------------------------
def test_one_hot():
    class Five(Count):
        def __init__(self):
            super().__init__()
            self.observation_space = Discrete(5, start=-1)

        def reset(self, **_):
            return 2, {}

    env = OneHotObservation(Five())
    assert env.observation_space == Box(0.0, 1.0, (5,), np.float32)
    assert env.reset()[0].tolist() == [0, 0, 0, 1, 0]
    with pytest.raises(rlcore.ConfigError, match="one_hot_observation needs a Discrete"):
        OneHotObservation(Count())


def test_rescaled_actions():
    inner = Count()
    env = RescaleAction(inner)
    assert env.action_space == Box(-1.0, 1.0, (1,), np.float32)
    env.reset()
    for given in (-1.0, 0.0, 1.0):
        env.step(np.array([given], np.float32))
    np.testing.assert_allclose(np.concatenate(inner.seen), [-2.0, 1.0, 4.0])
    with pytest.raises(rlcore.ConfigError, match="bounded Box of actions and low < high"):
        RescaleAction(Count(), low=1.0, high=-1.0)
    with pytest.raises(rlcore.ConfigError, match="bounded Box"):
        RescaleAction(gym.make("CartPole-v1"))


# -- by name -----------------------------------------------------------------------------------------------------
def test_a_run_with_wrappers_by_name(tmp_path):
    options = {"backend": "numpy", "steps": 120, "evaluation_episodes": 1, "hooks": [], "num_envs": 2}
    result = rlcore.train(
        "dqn",
        env="CartPole-v1",
        env_options={"max_episode_steps": 7},
        wrappers=["time_aware", {"name": "frame_stack", "num_frames": 3}],
        config={"hidden": [4], "learning_starts_env_steps": 50},
        run_dir=tmp_path / "a",
        **options,
    )
    shapes = {e.path: e.shape for e in result.agent.get_weights().manifest}
    assert shapes["q_network.network.layers.1.layers.0.kernel"] == (15, 4)  # (4 + time) * 3 frames
    assert max(result.after.lengths) <= 7
    text = (tmp_path / "a" / "config.yaml").read_text()
    assert "- time_aware\n- name: frame_stack\n  num_frames: 3\n" in text
    again = rlcore.train(**rlcore.load_config(tmp_path / "a" / "config.yaml"), run_dir=tmp_path / "b")
    assert np.array_equal(again.agent.get_weights().buffer, result.agent.get_weights().buffer)


@pytest.mark.parametrize(
    "settings,text",
    [
        (
            {"wrappers": ["fram_stack"]},
            "'wrappers.0': unknown wrapper 'fram_stack'. Did you mean 'frame_stack'",
        ),
        (
            {"wrappers": [{"name": "frame_stack", "num_frame": 3}]},
            "wrappers.0.num_frame': .* Did you mean 'num_frames'",
        ),
        ({"wrappers": ["one_hot_observation"]}, "one_hot_observation needs a Discrete observation"),
        ({"wrappers": ["atari"]}, "atari wraps games of the Arcade Learning Environment"),
        ({"env_options": {"no_such": 1}}, "environment 'CartPole-v1' with env_options .*no_such"),
    ],
)
def test_mistakes_are_named(settings, text):
    with pytest.raises(rlcore.ConfigError, match=text):
        rlcore.train("dqn", env="CartPole-v1", backend="numpy", steps=10, **settings)


def test_wrappers_are_for_single_environments():
    make = WrappedEnv(lambda: make_vector("CartPole-v1", 2), {}, (check_spec("wrapper", "time_aware"),))
    with pytest.raises(rlcore.ConfigError, match="the function given makes a vector environment"):
        make()


@pytest.mark.public_bug("AL-14")
def test_rewards_are_learned_from_clipped_and_reported_raw(tmp_path):
    seen = []

    class Watch:
        @hookimpl
        def rlcore_after_rollout(self, rollout):
            seen.extend(rollout.episodes)

    settings = {"reward_clip": 1.0, "hidden": [4], "learning_starts_env_steps": 1, "gamma": 0.0, "learning_rate": 0.05}
    settings |= {"train_every_env_steps": 1, "epsilon": 0.1}

    class Discretely(Count):
        def __init__(self):
            super().__init__((4,))
            self.action_space = Discrete(2)

    result = rlcore.train(
        "dqn", env=Discretely, backend="numpy", steps=300, evaluation_episodes=2, hooks=[Watch()], config=settings,
        run_dir=tmp_path / "run",
    )  # fmt: skip
    assert seen and all(total == 5.0 * length for total, length in seen)
    assert result.after.returns == [25.0, 25.0]
    values = result.agent.executable("act_greedy", np.full((1, 4), 13, np.uint8))
    assert values.shape == (1,)


# -- Atari -------------------------------------------------------------------------------------------------------
def game(**options):
    import ale_py

    gym.register_envs(ale_py)
    return gym.make("ALE/Breakout-v5", frameskip=1, repeat_action_probability=0.0, **options)


def test_what_an_agent_sees_of_a_game():
    env = Atari(game())
    assert env.observation_space == Box(0, 255, (84, 84, 4), np.uint8)
    first, info = env.reset(seed=3)
    assert first.shape == (84, 84, 4) and first.dtype == np.uint8 and len(np.unique(first)) > 3
    starts = {env.reset()[1]["episode_frame_number"] for _ in range(8)}
    assert len(starts) > 2  # a random number of no-ops
    before = env.reset()[0]
    after = env.step(3)[0]
    np.testing.assert_array_equal(after[..., :3], before[..., 1:])  # the frames advance
    assert not np.array_equal(after[..., 3], after[..., 2])
    frames = env.step(0)[4]["episode_frame_number"]
    assert env.step(0)[4]["episode_frame_number"] - frames == 4
    assert info["lives"] == 5


@pytest.mark.public_bug("AR-16")
def test_a_life_lost_ends_an_episode_but_not_the_game():
    env = Atari(game(), life_loss_ends=True, noop_max=1)
    env.reset(seed=0)
    lives, resets = [], 0
    for _ in range(3000):
        *_, terminated, truncated, info = env.step(0)
        if terminated or truncated:
            lives.append(info["lives"])
            assert info["game_over"] is (info["lives"] == 0)
            resets += 1
            _, info = env.reset()
            assert info["lives"] == (lives[-1] or 5)  # the same game goes on, or a new one starts
            if lives[-1] == 0:
                break
    assert lives == [4, 3, 2, 1, 0]
    plain = Atari(game(), noop_max=1)
    plain.reset(seed=0)
    for _ in range(3000):
        *_, terminated, truncated, info = plain.step(0)
        if terminated or truncated:
            break
        plain.env.unwrapped.ale.act(1)  # press FIRE, so that the game ends at some time
    assert terminated and info["lives"] == 0


@pytest.mark.public_bug("AR-15")
def test_a_game_is_cut_off_after_108_000_frames():
    """27,000 steps of four frames, by the game's own limit; here a hundredth of it, as it counts the same."""
    assert game().spec.kwargs["max_num_frames_per_episode"] == 108_000
    env = Atari(game(max_num_frames_per_episode=1080), fire_reset=False, noop_max=1)  # without FIRE it waits for ever
    env.reset(seed=0)
    steps, terminated, truncated = 0, False, False
    while not (terminated or truncated):
        *_, terminated, truncated, _ = env.step(0)
        steps += 1
    assert truncated and not terminated and 268 <= steps <= 270


def test_frames_are_not_skipped_twice():
    import ale_py

    gym.register_envs(ale_py)
    with pytest.raises(rlcore.ConfigError, match=r"make the game without: env_options \{frameskip: 1\}"):
        Atari(gym.make("ALE/Breakout-v5"))


def test_dqn_plays_atari(tmp_path):
    """A few steps, by name alone: no-op starts, life loss in training only, clipped rewards, the Nature network."""
    result = rlcore.train(
        "dqn",
        env="ale_py:ALE/Breakout-v5",
        env_options={"frameskip": 1, "max_num_frames_per_episode": 400},
        wrappers=[{"name": "atari", "life_loss_ends": True}],
        evaluation_wrappers=["atari"],
        backend="torch",
        steps=60,
        evaluation_episodes=1,
        config={"reward_clip": 1.0, "learning_starts_env_steps": 32, "batch_size": 4, "replay_capacity": 100},
        run_dir=tmp_path / "run",
    )
    assert result.updates > 0
    shapes = {e.path: e.shape for e in result.agent.get_weights().manifest}
    assert shapes["q_network.network.layers.1.kernel"] == (8, 8, 4, 32)
    adapter = VectorAdapter(make_vector(WrappedEnv("ale_py:ALE/Breakout-v5", {"frameskip": 1}, ()), 1))
    assert adapter.num_envs == 1
