"""The vector-env adapter: the same transitions from every kind of vector env in every autoreset mode."""

from __future__ import annotations

import warnings
from contextlib import closing
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import optree
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from rlcore.envs import EpisodeStats, KeepFinalObservation, Steps, VectorAdapter, make_vector
from rlcore.errors import ConfigError, RLCoreError, SpecError
from rlcore.memories import NStepBuilder, UniformReplay

N, LENGTHS, ENDS = 3, (3, 1, 5, 2, 4), ("terminated", "truncated", "both", "truncated")
Streams = list[list[tuple[Any, ...]]]  # by env: observation, action, reward, terminated, truncated, next observation
NEXT, SAME, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


class Counting(gym.Env):
    """Observes [episode, step]; the reward depends on both and on the action. Episodes of odd lengths end in turn by
    termination, truncation and both. ``reuse``: every observation is one and the same array, rewritten."""

    action_space = spaces.Discrete(2)

    def __init__(self, offset: int = 0, kind: str = "box") -> None:
        self.offset, self.kind, self.episode, self.t = offset, kind, -1, 0
        box = spaces.Box(-1, 1e6, (2,), np.float32)
        nested = {"at": box, "flags": spaces.MultiBinary(3), "part": spaces.Tuple([spaces.Discrete(99), box])}
        self.observation_space = spaces.Dict(nested) if kind == "dict" else box
        self.buffer = np.zeros(2, np.float32)

    def observe(self) -> Any:
        self.buffer[:] = self.episode, self.t
        at = self.buffer if self.kind == "reuse" else self.buffer.copy()
        if self.kind == "dict":
            return {"at": at, "flags": np.array([self.t & 1, 0, 1], np.int8), "part": (self.t, at + self.offset)}
        return at

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.t = 0 if seed is not None else self.episode + 1, 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        reward = 10.0 * self.episode + self.t + 0.5 * int(action)
        over, how = self.t == LENGTHS[(self.episode + self.offset) % 5], ENDS[(self.episode + self.offset) % 4]
        return self.observe(), reward, over and how != "truncated", over and how != "terminated", {}


def act(observation: Any) -> np.ndarray:
    at = observation["at"] if isinstance(observation, dict) else observation
    return (at.sum(-1) % 2).astype(np.int64)


def expected(kind: str, count: int) -> Streams:
    """The transitions of each env, from a plain loop."""
    streams = []
    for offset in range(N):
        env, stream = Counting(offset, "dict" if kind == "dict" else "box"), []
        observation, _ = env.reset(seed=0)
        while len(stream) < count:
            action = int(act(observation))
            following, reward, terminated, truncated, _ = env.step(action)
            stream.append((observation, action, reward, terminated, truncated, following))
            observation = env.reset()[0] if terminated or truncated else following
        streams.append(stream)
    return streams


def collected(adapter: VectorAdapter, count: int) -> Streams:
    """The valid transitions of each env; views of what the adapter gave, read only at the very end."""
    streams: Streams = [[] for _ in range(N)]
    while min(map(len, streams)) < count:
        observation, action = adapter.observation, act(adapter.observation)
        s = adapter.step(action)
        for i in np.flatnonzero(s.valid):
            row, last = (optree.tree_map(lambda a, i=i: a[i], o) for o in (observation, s.next_observation))
            streams[i].append((row, action[i], s.reward[i], s.terminated[i], s.truncated[i], last))
    return [stream[:count] for stream in streams]


def assert_same(got: Streams, want: Streams) -> None:
    for a, b in zip(optree.tree_leaves(got), optree.tree_leaves(want), strict=True):
        np.testing.assert_array_equal(a, b)


KINDS = [
    *((SyncVectorEnv, {"copy": copy}) for copy in (True, False)),
    *((AsyncVectorEnv, {"shared_memory": shared, "copy": copy}) for shared, copy in ((1, 1), (1, 0), (0, 1))),
]


def vector(cls: Any, mode: AutoresetMode, kind: str = "box", **options: Any) -> VectorAdapter:
    def make(offset: int) -> gym.Env:
        env = Counting(offset, kind)
        return KeepFinalObservation(env) if kind == "reuse" and cls is AsyncVectorEnv else env

    return VectorAdapter(cls([partial(make, i) for i in range(N)], autoreset_mode=mode, **options))


@pytest.mark.public_bug("AR-01")
@pytest.mark.public_bug("AR-06")
@pytest.mark.public_bug("AR-11")
@pytest.mark.parametrize("kind", ["box", "reuse", "dict"])
@pytest.mark.parametrize("mode", [NEXT, SAME, DISABLED])
@pytest.mark.parametrize(("cls", "options"), KINDS)
def test_same_transitions_in_every_mode(cls: Any, options: dict[str, Any], mode: AutoresetMode, kind: str) -> None:
    with closing(vector(cls, mode, kind, **options)) as adapter, warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter.reset(0)
        assert_same(collected(adapter, 40), expected(kind, 40))
        if options.get("shared_memory", True):
            adapter.reset(0)  # in the middle, where NEXT_STEP may have a reset pending
            assert_same(collected(adapter, 4), expected(kind, 4))


def test_reset_while_an_autoreset_is_pending() -> None:
    """Gymnasium resets such an env twice if it has no shared memory: the second one must be known for what it is."""
    with closing(vector(AsyncVectorEnv, NEXT, shared_memory=False)) as adapter:
        adapter.reset(0)
        ended = np.zeros(N, bool)
        while not ended.any():
            steps = adapter.step(act(adapter.observation))
            ended = steps.terminated | steps.truncated
        assert adapter.reset(0).tolist() == [[0, 0]] * N
        np.testing.assert_array_equal(adapter.step(np.zeros(N, np.int64)).valid, ~ended)
        np.testing.assert_array_equal(adapter.observation[ended], [[1, 0]] * ended.sum())


@pytest.mark.public_bug("AR-02")
@pytest.mark.public_bug("AR-03")
@pytest.mark.public_bug("AR-04")
@pytest.mark.public_bug("RB-15")
@pytest.mark.parametrize("mode", [NEXT, SAME, DISABLED])
@pytest.mark.parametrize("n", [1, 3])
def test_no_stored_transition_joins_two_episodes(mode: AutoresetMode, n: int) -> None:
    adapter, stats = vector(SyncVectorEnv, mode, "reuse"), EpisodeStats(N)
    builder, replay = NStepBuilder(N, n, 0.5), UniformReplay(64, 0)
    adapter.reset(0)
    steps = lengths = 0
    for _ in range(200):
        observation, action = adapter.observation, act(adapter.observation)
        s = adapter.step(action)
        batch = builder.add(observation, action, s.reward, s.terminated, s.truncated, s.next_observation, s.valid)
        if batch is not None:
            replay.add(batch)
        steps += np.count_nonzero(s.valid)
        lengths += sum(length for _, length in stats.add(s))
        if len(replay):
            stored = replay.state_dict()["arrays"]
            first, last, discount = stored["observation"], stored["next_observation"], stored["discount"]
            np.testing.assert_array_equal(first[:, 0], last[:, 0])
            horizon = last[:, 1] - first[:, 1]
            assert np.all((horizon >= 1) & (horizon <= n) & ((discount == 0) | (discount == 0.5**horizon)))
    assert steps == lengths + stats.lengths.sum()  # reset rows are no env steps


class Native(VectorEnv):
    """Two envs stepped as one under SAME_STEP: hands out the same arrays each time, a whole array as ``final_obs``, no
    mask and no ``final_info``; takes one seed only. Env 0 terminates at step 2, env 1 is truncated at step 3."""

    single_observation_space, single_action_space = spaces.Box(0, 99, (1,), np.float32), spaces.Discrete(2)
    observation_space, action_space = spaces.Box(0, 99, (2, 1), np.float32), spaces.MultiDiscrete([2, 2])

    def __init__(self, mode: Any = SAME, final: bool = True) -> None:
        self.num_envs, self.metadata, self.final = 2, {} if mode is None else {"autoreset_mode": mode}, final
        self.at, self.flags = np.zeros((2, 1), np.float32), np.zeros((2, 2), bool)
        self.reward = np.zeros(2, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)  # raises for a list
        self.at[:] = 0
        return self.at, {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.at += 1
        self.reward[:], self.flags[:] = self.at[:, 0], np.diag(self.at[:, 0] == [2, 3])
        final = self.at.copy()
        self.at[self.flags.any(0)] = 0
        return self.at, self.reward, self.flags[0], self.flags[1], {"final_obs": final} if self.final else {}


@pytest.mark.public_bug("AR-17")
@pytest.mark.public_bug("DT-02")
@pytest.mark.parametrize("mode", [SAME, "SameStep"])
def test_native_env_that_reuses_its_arrays(mode: Any) -> None:
    env = Native(mode)
    adapter = VectorAdapter(env)
    adapter.reset(3)
    assert adapter.seeds == (env.np_random_seed,)
    seen = [(adapter.step(np.zeros(2, np.int64)), adapter.observation) for _ in range(3)]
    assert [s.next_observation.ravel().tolist() for s, _ in seen] == [[1, 1], [2, 2], [1, 3]]
    assert [o.ravel().tolist() for _, o in seen] == [[1, 1], [0, 2], [1, 0]]
    assert [s.reward.tolist() for s, _ in seen] == [[1, 1], [2, 2], [1, 3]]
    assert [(s.terminated.tolist(), s.truncated.tolist()) for s, _ in seen[1:]] == [([1, 0], [0, 0]), ([0, 0], [0, 1])]
    assert all(s.valid.all() and s.reward.dtype == np.float32 and s.valid.dtype == bool for s, _ in seen)


@pytest.mark.public_bug("AR-11")
def test_what_the_adapter_refuses() -> None:
    words = Counting()
    words.observation_space = spaces.Text(3)
    with pytest.raises(SpecError, match="Text"):
        VectorAdapter(make_vector(words))
    for own, given, message in [
        (None, None, "autoreset_mode'] is missing"),
        ("sometimes", None, "NextStep, SameStep, Disabled"),
        (SAME, NEXT, "is NextStep, but .* says SameStep"),
    ]:
        with pytest.raises(ConfigError, match=message):
            VectorAdapter(Native(own), autoreset_mode=given)
    adapter = VectorAdapter(Native(None, final=False), autoreset_mode="SameStep")
    with pytest.raises(RLCoreError, match="reset"):
        adapter.step(np.zeros(2, np.int64))
    adapter.reset(0)
    adapter.step(np.zeros(2, np.int64))
    with pytest.raises(RLCoreError, match=r"lacks the last observation of envs \[0\]"):
        adapter.step(np.zeros(2, np.int64))


def test_a_reset_row_holds_nothing_whatever_the_env_says() -> None:
    env = SyncVectorEnv([Counting])
    env.step = lambda a, step=env.step: (step(a)[0], np.ones(1), np.ones(1, bool), np.ones(1, bool), {})
    adapter = VectorAdapter(env)
    adapter.reset(0)
    seen = [adapter.step(np.zeros(1, np.int64)) for _ in range(4)]
    rows = [(s.valid[0], s.reward[0], s.terminated[0], s.truncated[0]) for s in seen]
    assert rows == [(1, 1, 1, 1), (0, 0, 0, 0)] * 2


@pytest.mark.public_bug("AR-06")
def test_warns_when_another_process_lost_the_final_observation() -> None:
    env = AsyncVectorEnv([partial(Counting, 0, "reuse")], autoreset_mode=SAME)
    with closing(VectorAdapter(env)) as adapter, pytest.warns(RuntimeWarning, match="KeepFinalObservation"):
        adapter.reset(0)
        for _ in range(LENGTHS[0]):
            adapter.step(np.zeros(1, np.int64))


@pytest.mark.public_bug("DT-01")
@pytest.mark.public_bug("DT-02")
def test_seeds_are_distinct_kept_and_passed_on() -> None:
    adapter = VectorAdapter(make_vector("CartPole-v1", 64))
    first = adapter.reset(5)
    seeds = adapter.seeds
    assert len(set(seeds)) == 64 and adapter.env.np_random_seed == seeds and all(0 <= s < 2**31 for s in seeds)
    following = adapter.reset(None)  # goes on with the envs' own random numbers
    assert adapter.seeds == seeds and not np.array_equal(following, first)
    assert np.array_equal(adapter.reset(5), first) and not np.array_equal(adapter.reset(6), first)
    fresh = VectorAdapter(make_vector("CartPole-v1", 2))
    fresh.reset(None)
    assert len(set(fresh.seeds)) == 2 and fresh.env.np_random_seed == fresh.seeds


def test_actions_reach_the_env_in_its_form() -> None:
    got: list[Any] = []
    pair = spaces.Tuple([spaces.Box(-1, 1, (2,), np.float32), spaces.MultiBinary(2)])

    class Acts(Counting):
        action_space = spaces.Dict({"a": spaces.Discrete(3), "b": pair})

        def step(self, action: Any) -> Any:
            got.append(action)
            assert self.action_space.contains(action)
            return super().step(0)

    adapter = VectorAdapter(make_vector(Acts, 2))
    assert adapter.single_action_spec["b"][0].shape == (2,)
    adapter.reset(0)
    actions: Any = {"a": np.array([2, 1], np.int32), "b": [np.full((2, 2), 0.5), np.eye(2, dtype=bool)]}
    adapter.step(actions)
    assert [a["a"] for a in got] == [2, 1] and got[1]["b"][1].tolist() == [0, 1]
    for wrong in ({"a": actions["a"]}, {**actions, "b": actions["b"][:1]}, {**actions, "a": np.zeros(3, int)}):
        with pytest.raises(SpecError, match="actions: got"):
            adapter.step(wrong)
    with pytest.raises(SpecError, match=r"actions: got float64\[2\], expected int64\[2\]"):
        adapter.step({**actions, "a": np.zeros(2)})


@pytest.mark.public_bug("AR-16")
def test_episode_stats() -> None:
    stats = EpisodeStats(3)
    for reward, terminated, truncated, valid, ended in [
        ([1, 2, 9], [0, 1, 0], [0, 0, 0], [1, 1, 0], [(2.0, 1)]),
        ([1, np.nan, 3], [0, 0, 0], [0, 0, 0], [1, 0, 1], []),
        ([1, 5, 3], [0, 0, 1], [1, 0, 1], [1, 1, 1], [(3.0, 3), (6.0, 2)]),
        ([1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1], [(1.0, 1), (6.0, 2), (1.0, 1)]),
    ]:
        masks = (np.array(m, bool) for m in (terminated, truncated, valid))
        assert stats.add(Steps(None, np.array(reward, np.float32), *masks)) == ended


@pytest.mark.parametrize(
    ("env", "num_envs", "message"),
    [
        ("CartPol-v1", 1, "knows no environment 'CartPol-v1'. Did you mean 'CartPole-v1'?"),
        ("CartPole-v9", 1, "doesn't exist"),
        ("Pendulum-v0", 1, "deprecated"),
        ("Nowhere/Toy-v0", 1, "Have you installed the proper package for Nowhere?"),
        ("no_such_module:Toy-v0", 1, "No module named 'no_such_module'"),
        ("CartPole-v1", 0, "num_envs is 0"),
        (Counting(), 2, "give a function that makes one"),
        (partial(max, [Counting()]), 2, "same env twice"),
        (Native(), 3, "num_envs is 3, but the vector env given has 2"),
        (3, 1, "env is a int"),
    ],
)
def test_make_vector(env: Any, num_envs: int, message: str) -> None:
    with pytest.raises(ConfigError) as e:
        make_vector(env, num_envs)
    assert message in str(e.value) and "\n" not in str(e.value)
    assert (e.value.__cause__ is not None) == (isinstance(env, str) and num_envs > 0)
    native = Native()
    assert make_vector(native, 1) is native and make_vector(native, 2) is native
    assert make_vector(Counting, 2).num_envs == 2 and make_vector(Counting(), 1).num_envs == 1
