"""The small worlds: one set of rules, stepped singly or at once, in every autoreset mode; their optima are known."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import optree
import pytest
from gymnasium import spaces
from gymnasium.error import Error, InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import rlcore
from rlcore.envs import VectorAdapter, register_worlds
from rlcore.envs.worlds import WORLDS
from rlcore.envs.worlds.bandit import Bandit, BanditEnv, BanditVectorEnv
from rlcore.envs.worlds.gaussian_density import GaussianDensity, GaussianDensityEnv, GaussianDensityVectorEnv
from rlcore.envs.worlds.grid import GridWorld, GridWorldEnv, GridWorldVectorEnv
from rlcore.envs.worlds.grid_maps import MAPS
from rlcore.envs.worlds.memory_cue import MemoryCue, MemoryCueEnv, MemoryCueVectorEnv
from rlcore.envs.worlds.random_env import RandomEnv, RandomVectorEnv, RandomWorld
from rlcore.envs.worlds.sampling import sampler
from rlcore.envs.worlds.streams import Streams, words
from rlcore.errors import ConfigError

IDS = list(WORLDS)
NEXT, SAME, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
UP, RIGHT, DOWN, LEFT = range(4)

LEAVES = {
    "ranges": spaces.Box(np.array([-2, 0], np.float32), np.array([-1, 1e30], np.float32)),
    "bounds": spaces.Box(np.array([-np.inf, 3, -np.inf, -1.0]), np.array([np.inf, np.inf, -3, 1]), dtype=np.float64),
    "image": spaces.Box(0, 255, (3, 3, 1), np.uint8),
    "scalar": spaces.Box(-1, 1, (), np.float32),
    "ints": spaces.Box(-3, 4, (2, 2), np.int32),
    "choice": spaces.Discrete(5, start=-2),
    "choices": spaces.MultiDiscrete([2, 7], start=[1, -1]),
    "flags": spaces.MultiBinary((2, 2)),
}
NESTED = spaces.Dict({**LEAVES, "pair": spaces.Tuple([spaces.Discrete(3), spaces.Dict({"in": spaces.MultiBinary(2)})])})
WALLED = ("S.W.", ".FW.", "..HG")
VARIANTS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "moves": (GridWorldEnv, GridWorldVectorEnv, {"map": WALLED}),
    "moves xy": (GridWorldEnv, GridWorldVectorEnv, {"map": "2x2", "observation": "xy"}),
    "container": (GridWorldEnv, GridWorldVectorEnv, {"map": WALLED, "actions": "container"}),
    "container xy": (GridWorldEnv, GridWorldVectorEnv, {"actions": "container", "observation": "xy"}),
    "cue": (MemoryCueEnv, MemoryCueVectorEnv, {"num_cues": 3, "delay": 2}),
    "cue at once": (MemoryCueEnv, MemoryCueVectorEnv, {"delay": 0}),
    "bandit": (BanditEnv, BanditVectorEnv, {"arms": 3}),
    "bandit of 3": (BanditEnv, BanditVectorEnv, {"episode_length": 3}),
    "random": (RandomEnv, RandomVectorEnv, {"end_probability": 0.4}),
    "random nested": (RandomEnv, RandomVectorEnv, {"observation_space": NESTED, "action_space": NESTED}),
    "random tuple": (RandomEnv, RandomVectorEnv, {"observation_space": NESTED["pair"], "end_probability": 1.0}),
    "gaussian": (GaussianDensityEnv, GaussianDensityVectorEnv, {"dimensions": 3, "episode_length": 2}),
}


def assert_same(a: Any, b: Any) -> None:
    """Equal in nesting, shapes, dtypes and values; of objects, one by one."""
    leaves = (optree.tree_leaves(tree, none_is_leaf=True) for tree in (a, b))
    assert optree.tree_structure(a, none_is_leaf=True) == optree.tree_structure(b, none_is_leaf=True), (a, b)
    for x, y in zip(*leaves, strict=True):
        assert type(x) is type(y)
        if isinstance(x, np.ndarray) and x.dtype == np.object_:
            for one, other in zip(x, y, strict=True):
                assert_same(one, other)
        else:
            assert np.asarray(x).dtype == np.asarray(y).dtype
            np.testing.assert_array_equal(x, y)


# -- the same single and at once -----------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", [NEXT, SAME, DISABLED])
@settings(max_examples=60, deadline=None)
@given(
    variant=st.sampled_from(list(VARIANTS)),
    n=st.integers(1, 4),
    limit=st.sampled_from([None, 1, 3, 7]),
    seed=st.integers(0, 2**70),
    resets=st.sets(st.integers(1, 29), max_size=3),
)
def test_a_vector_env_is_its_single_envs(variant, mode, n, limit, seed, resets):
    single, vector, options = VARIANTS[variant]
    many = vector(num_envs=n, max_episode_steps=limit, autoreset_mode=mode, **options)
    sync = SyncVectorEnv([lambda: single(max_episode_steps=limit, **options)] * n, autoreset_mode=mode)
    assert many.observation_space == sync.observation_space and many.action_space == sync.action_space
    assert many.single_observation_space == sync.single_observation_space and many.metadata == sync.metadata
    rng = np.random.default_rng(seed)
    sync.action_space.seed(seed % 2**32)
    assert_same(many.reset(seed=seed), sync.reset(seed=seed))
    for step in range(30):
        if step in resets:
            again = [seed + 7 if rng.random() < 0.5 else None for _ in range(n)]
            assert_same(many.reset(seed=again), sync.reset(seed=again))
        actions = sync.action_space.sample()
        got, want = many.step(actions), sync.step(actions)
        assert_same(got, want)
        assert many.observation_space.contains(got[0])
        ended = want[2] | want[3]
        if mode is DISABLED and ended.any():
            mask = ended | (rng.random(n) < 0.3)
            some = [int(rng.integers(99)) if rng.random() < 0.5 else None for _ in range(n)]
            resets_of = [env.reset(seed=some, options={"reset_mask": mask.copy()}) for env in (many, sync)]
            assert_same(*resets_of)
    assert many.np_random_seed == sync.np_random_seed


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_makes_the_same_of_an_id_both_ways(env_id):
    """The time limit is a wrapper of the single env, and the vector env's own."""
    many = gym.make_vec(env_id, num_envs=3)
    sync = gym.make_vec(env_id, num_envs=3, vectorization_mode="sync")
    assert type(many).__name__.endswith("VectorEnv") and many.metadata["autoreset_mode"] is NEXT
    assert_same(many.reset(seed=1), sync.reset(seed=1))
    limit = gym.spec(env_id).max_episode_steps
    truncated = 0
    for _ in range(min(limit or 20, 200) + 5):
        # Up all the time: an episode of a grid world without end.
        actions = np.zeros(3, np.int64) if limit else many.action_space.sample()
        got = many.step(actions)
        assert_same(got, sync.step(actions))
        truncated += got[3].sum()
    assert (truncated > 0) == (limit is not None and limit <= 200)


@pytest.mark.parametrize("variant", VARIANTS)
def test_arrays_returned_are_the_callers(variant):
    """They are not written to later, and what is written to them changes nothing."""
    _, vector, options = VARIANTS[variant]
    for mode in (NEXT, SAME):
        env, other = (vector(num_envs=3, max_episode_steps=3, autoreset_mode=mode, **options) for _ in range(2))
        env.action_space.seed(0)
        seen, spoilt = [env.reset(seed=0)], other.reset(seed=0)
        copies = [optree.tree_map(np.copy, seen[0])]
        for _ in range(12):
            for leaf in optree.tree_leaves(spoilt):
                if isinstance(leaf, np.ndarray) and leaf.dtype != np.object_:
                    leaf[...] = 1
            actions = env.action_space.sample()
            seen.append(env.step(actions)[:4])
            copies.append(optree.tree_map(np.copy, seen[-1]))
            spoilt = other.step(actions)
            assert_same(spoilt[:4], seen[-1])
        assert_same(seen, copies)


@pytest.mark.parametrize("variant", ["moves", "container xy", "cue", "random nested", "gaussian"])
def test_the_adapter_sees_the_same_transitions_in_every_mode(variant):
    _, vector, options = VARIANTS[variant]
    streams = []
    for mode in (NEXT, SAME, DISABLED):
        adapter = VectorAdapter(vector(num_envs=3, max_episode_steps=7, autoreset_mode=mode, **options))
        rngs = [np.random.default_rng(i) for i in range(3)]
        adapter.reset(5)
        seen: list[list[Any]] = [[], [], []]
        acted = 0
        while min(map(len, seen)) < 25:
            before = adapter.observation
            # An env that is only reset uses up no action.
            pending = adapter._pending if adapter._pending is not None else np.zeros(3, bool)
            one = [_sample(adapter.env.single_action_space, np.random.default_rng(0) if p else r)
                   for p, r in zip(pending, rngs, strict=True)]  # fmt: skip
            s = adapter.step(optree.tree_map(lambda *rows: np.stack(rows), *one))
            for i in np.flatnonzero(s.valid):
                rows = optree.tree_map(lambda leaf, i=i: leaf[i], (before, s.next_observation))
                seen[i].append((rows, s.reward[i], s.terminated[i], s.truncated[i]))
            acted += s.valid.sum()
        streams.append([stream[:25] for stream in seen])
    assert_same(streams[0], streams[1])
    assert_same(streams[0], streams[2])


def _sample(space: Any, rng: np.random.Generator) -> Any:
    return optree.tree_map(lambda leaf: leaf[0], sampler(space)(rng.integers(2**63, size=1, dtype=np.uint64)))


# -- Gymnasium -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("env_id", IDS)
def test_gymnasiums_own_checks(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if "Gaussian" in env_id:  # the actions are in [-2, 2], as RLgraph's
            warnings.filterwarnings("ignore", message=".*symmetric and normalized")
        check_env(gym.make(env_id).unwrapped)


def test_registration_is_lazy_and_can_be_repeated():
    before = dict(gym.registry)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Gymnasium warns of an id that is overwritten
        register_worlds()
    assert gym.registry == before and set(IDS) <= set(before)
    code = (
        "import sys, gymnasium as gym, rlcore.envs\n"
        "assert not [m for m in sys.modules if m.startswith('rlcore.envs.worlds.')]\n"
        "gym.make_vec('rlcore/GridWorld4x4-v0', num_envs=8).reset(seed=0)\n"
        "assert 'rlcore.envs.worlds.bandit' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_seeds():
    env = BanditVectorEnv(num_envs=3)
    pull = np.zeros(3, np.int64)

    def rewards(seed: Any) -> list[float]:
        env.reset(seed=seed)
        return env.step(pull)[1].tolist()

    first = rewards(5)
    assert env.np_random_seed == (5, 6, 7) and len(set(first)) == 3
    assert rewards([7, 6, 5]) == first[::-1] and rewards(np.int64(5)) == first
    later = rewards(None)
    assert later != first and len(set(later)) == 3
    assert rewards([None, 6, None])[1] == first[1] and env.np_random_seed == (5, 6, 7) and rewards(6)[0] == first[1]
    assert rewards(5 + 2**64)[0] != first[0]
    fresh = BanditVectorEnv(num_envs=3)
    fresh.reset(seed=[None, 6, None])
    assert fresh.step(pull)[1][1] == first[1] and len(set(fresh.np_random_seed)) == 3
    single = BanditEnv()
    single.reset(seed=6)
    assert single.step(0)[1] == first[1]
    single.reset()
    unseeded = [BanditEnv(), BanditEnv()]
    [env.reset() for env in unseeded]
    assert len({env.step(0)[1] for env in [single, *unseeded]}) == 3


def test_what_is_refused():
    env = GridWorldVectorEnv(num_envs=2, map="2x2", autoreset_mode="Disabled")
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(np.zeros(2, np.int64))
    with pytest.raises(ResetNeeded, match="without a reset_mask"):
        env.reset(options={"reset_mask": np.ones(2, bool)})
    env.reset(seed=0)
    for actions in ([0, 4], [-1, 0], [0], [0.0, 1.0], [True, False]):
        with pytest.raises(InvalidAction, match="expected"):
            env.step(np.array(actions))
    env.step(np.array([RIGHT, UP]))
    with pytest.raises(ResetNeeded, match=r"envs \[0\] are over"):
        env.step(np.array([UP, UP]))
    env.reset(seed=0)
    env.step(np.array([RIGHT, RIGHT]))
    env.reset(options={"reset_mask": np.array([False, True])})
    with pytest.raises(ResetNeeded, match=r"envs \[0\] are over"):  # still
        env.step(np.array([UP, UP]))
    for mask, error in [(np.ones(3, bool), ValueError), (np.zeros(2, bool), ValueError), ([True, True], TypeError),
                        (np.ones(2), TypeError)]:  # fmt: skip
        with pytest.raises(error, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    for seed, error in [([1], ValueError), (-1, Error), ([0, "a"], Error)]:
        with pytest.raises(error, match="seed"):
            env.reset(seed=seed)
    one = GridWorldEnv(map="2x2")
    with pytest.raises(ResetNeeded):
        one.step(0)
    one.reset()
    one.step(RIGHT)
    with pytest.raises(ResetNeeded):
        one.step(0)
    container = GridWorldVectorEnv(num_envs=1, actions="container")
    container.reset()
    for actions in (np.zeros(1, int), {"forward": np.zeros(1, int), "turn": np.zeros(1, int)}):
        with pytest.raises(InvalidAction, match="forward, turn and jump"):
            container.step(actions)
    gaussian = GaussianDensityEnv()
    gaussian.reset()
    for action in (np.array([np.nan]), np.zeros(2), ["a"]):
        with pytest.raises(InvalidAction, match="finite"):
            gaussian.step(action)
    random = RandomEnv(action_space=NESTED)
    random.reset()
    with pytest.raises(InvalidAction, match="expected 1 of Dict"):
        random.step(0)


@pytest.mark.parametrize(
    ("world", "options", "message"),
    [
        (GridWorldEnv, {"map": "4x5"}, "no map '4x5'. Did you mean '4x4'?"),
        (GridWorldEnv, {"map": ["S.", "G"]}, "lengths"),
        (GridWorldEnv, {"map": []}, "lengths"),
        (GridWorldEnv, {"map": ["SXG"]}, "'X'"),
        (GridWorldEnv, {"map": ["SSG"]}, "2 starts"),
        (GridWorldEnv, {"observation": "camera"}, "discrete or xy"),
        (GridWorldEnv, {"actions": "udlr"}, "move or container"),
        (GridWorldEnv, {"max_episode_steps": 0}, "max_episode_steps is 0"),
        (GridWorldVectorEnv, {"num_envs": 0}, "num_envs is 0"),
        (GridWorldVectorEnv, {"autoreset_mode": "later"}, "NextStep, SameStep, Disabled"),
        (MemoryCueEnv, {"num_cues": 1}, "num_cues is 1"),
        (MemoryCueEnv, {"delay": -1}, "delay is -1"),
        (BanditEnv, {"arms": True}, "arms is True"),
        (BanditEnv, {"means": []}, "means"),
        (BanditEnv, {"means": [np.nan]}, "means"),
        (BanditEnv, {"reward_std": -1}, "reward_std"),
        (GaussianDensityEnv, {"scale": 0}, "scale is 0"),
        (RandomEnv, {"end_probability": 1.1}, "end_probability"),
        (RandomEnv, {"observation_space": spaces.Text(3)}, "Text spaces can't be sampled"),
        (RandomEnv, {"action_space": spaces.Sequence(spaces.Discrete(2))}, "Sequence spaces"),
    ],
)
def test_options_that_are_refused(world, options, message):
    with pytest.raises(ConfigError) as e:
        world(**options)
    assert message in str(e.value)


# -- grid worlds ---------------------------------------------------------------------------------------------------
def walk(env: Any, *actions: Any) -> list[tuple[Any, float, bool, bool]]:
    env.reset(seed=0)
    steps = [env.step(a)[:4] for a in actions]
    return [(np.asarray(o).tolist(), r, term, trunc) for o, r, term, trunc in steps]


def test_grid_world_by_hand():
    """Cells are numbered down the columns."""
    env = GridWorldEnv(map="2x2")
    assert env.reset()[0] == 0
    assert walk(env, UP, LEFT, DOWN, DOWN, RIGHT) == [
        (0, -0.1, False, False), (0, -0.1, False, False), (1, -0.1, False, False), (1, -0.1, False, False),
        (3, 1.0, True, False),
    ]  # fmt: skip
    assert walk(env, RIGHT) == [(2, -5.0, True, False)]
    env = GridWorldEnv(map=WALLED, observation="xy", max_episode_steps=5)
    # Into the wall, onto the fire, against the wall while in it, past, and into the hole with the last step.
    assert walk(env, RIGHT, RIGHT, DOWN, RIGHT, DOWN) == [
        ([1, 0], -0.1, False, False), ([1, 0], -0.1, False, False), ([1, 1], -3.0, False, False),
        ([1, 1], -3.0, False, False), ([1, 2], -0.1, False, True),
    ]  # fmt: skip
    assert walk(env, DOWN, DOWN, RIGHT, DOWN, RIGHT)[-1] == ([2, 2], -5.0, True, True)


def test_container_actions_by_hand():
    def act(forward: int = 1, turn: int = 1, jump: int = 0) -> dict[str, int]:
        return {"forward": forward, "turn": turn, "jump": jump}

    env = GridWorldEnv(map=WALLED, actions="container", observation="xy")
    assert env.reset()[0].tolist() == [0, 0, 0, -1]
    round_the_wall = act(turn=2), act(forward=2), act(turn=0), act(forward=0), act(turn=2, jump=1)
    assert walk(env, *round_the_wall, act(turn=2, forward=2)) == [
        ([0, 0, 1, 0], -0.1, False, False),  # faces right
        ([1, 0, 1, 0], -0.1, False, False),
        ([1, 0, 0, -1], -0.1, False, False),  # faces up
        ([1, 1, 0, -1], -3.0, False, False),  # backs into the fire
        ([3, 1, 1, 0], -0.1, False, False),  # turns right and jumps the wall
        ([3, 2, 0, 1], 1.0, True, False),  # turns right and walks down to the goal
    ]  # fmt: skip
    # Down the left column from its upper end: left of it is nothing, and below are two cells, one, and then none.
    down = walk(env, act(turn=0, jump=1), act(turn=0, jump=1), act(forward=0), act(jump=1), act(jump=1))
    assert [(o, r) for o, r, _, _ in down] == [
        ([0, 0, -1, 0], -0.1), ([0, 2, 0, 1], -0.1), ([0, 1, 0, 1], -0.1), ([0, 2, 0, 1], -0.1), ([0, 2, 0, 1], -0.1)
    ]  # fmt: skip
    assert walk(GridWorldEnv(map=("SW",), actions="container"), act(turn=2, jump=1)) == [(1, -0.1, False, False)]
    # Walks into the hole, and does not jump out of it.
    env = GridWorldEnv(map=("SH.",), actions="container")
    assert walk(env, act(turn=2, forward=2, jump=1)) == [(4 + 1, -5.0, True, False)]
    assert walk(env, act(turn=2, jump=1)) == [(8 + 1, -0.1, False, False)]


def action_values(world: GridWorld, gamma: float) -> np.ndarray:
    """float64 [states, actions], by value iteration"""
    q = np.zeros(world.next_state.shape)
    for _ in range(1000):
        goes_on = gamma * q.max(1) * ~world.terminal
        new = (world.reward + goes_on)[world.next_state]
        if np.array_equal(new, q):
            break
        q = new
    return q


def test_action_values_of_the_2x2_world_are_rlgraphs():
    """Pass mark of its DQN test, at its discount of 0.98; any from 0.974 to 1 gives the same decimals."""
    for gamma in (0.98, 0.974, 1.0):
        q = action_values(GridWorld(map="2x2"), gamma)
        np.testing.assert_array_equal(q[:2].round(1), [[0.8, -5, 0.9, 0.8], [0.8, 1, 0.9, 0.9]])
    exact = action_values(GridWorld(map="2x2"), 0.98)
    np.testing.assert_allclose(exact[:2], [[0.7624, -5, 0.88, 0.7624], [0.7624, 1, 0.88, 0.88]], atol=1e-12)


OPTIMA = {"2x2": 0.9, "4x4": 0.5, "8x8": -0.3, "four_rooms": -0.3, "long_chain": -2.3, "chain": 0.6}


@pytest.mark.parametrize("name", MAPS)
def test_the_optimum_of_each_map_and_a_walk_that_reaches_it(name):
    world = GridWorld(map=name)
    q = action_values(world, 1.0)
    assert q[world.start_state].max() == pytest.approx(OPTIMA[name])
    env, total, over = GridWorldEnv(map=name), 0.0, False
    state, _ = env.reset()
    while not over:
        state, reward, over, _, _ = env.step(q[state].argmax())
        total += reward
    assert total == pytest.approx(OPTIMA[name])
    # Able to turn and walk at once, and to jump, one is never slower.
    free = GridWorld(map=name, actions="container")
    assert action_values(free, 1.0)[free.start_state].max() >= OPTIMA[name] - 1e-9


# -- memory --------------------------------------------------------------------------------------------------------
def test_memory_cue_by_hand():
    env = MemoryCueEnv(num_cues=3, delay=2)
    shown = env.reset(seed=3)[0]
    assert walk_of(env, 0, 1, shown - 1) == [(0, 0, False), (0, 0, False), (0, 1, True)]
    env.reset(seed=3)
    assert walk_of(env, shown - 1, shown - 1, shown % 3)[-1] == (0, -1, True)
    cues = MemoryCueVectorEnv(num_envs=3000, num_cues=3).reset(seed=0)[0]
    assert np.all(np.abs(np.bincount(cues, minlength=4) - [0, 1000, 1000, 1000]) < 100)


def walk_of(env: Any, *actions: int) -> list[tuple[int, float, bool]]:
    return [(int(o), r, term) for o, r, term, _, _ in map(env.step, actions)]


@pytest.mark.parametrize(("cues", "delay"), [(2, 1), (2, 3), (3, 2)])
def test_without_memory_no_policy_of_memory_cue_beats_chance(cues, delay):
    """All deterministic policies of observation and time, run on all cues; a random one is a mixture of them."""
    world = MemoryCue(num_cues=cues, delay=delay)
    every, unused, best = np.arange(cues), Streams(np.zeros(cues, np.uint64)), []
    seen = [sorted({int(o) for o in world.observe(every, np.full(cues, t))}) for t in range(delay + 1)]
    assert seen == [list(range(1, cues + 1))] + [[0]] * delay
    points = [(t, o) for t in range(delay + 1) for o in seen[t]]
    for choice in itertools.product(range(cues), repeat=len(points)):
        policy = dict(zip(points, choice, strict=True))
        returns, state = np.zeros(cues), every
        for t in range(delay + 1):
            now = np.full(cues, t)
            action = np.array([policy[t, int(o)] for o in world.observe(state, now)])
            state, reward, terminated = world.step(state, now, action, unused)
            returns += reward
            assert terminated.all() == (t == delay) and terminated.any() == (t == delay)
        best.append(returns.mean())
    np.testing.assert_allclose(best, 2 / cues - 1)
    env = MemoryCueVectorEnv(num_envs=50, num_cues=cues, delay=delay)
    action = env.reset(seed=0)[0] - 1
    total = sum(env.step(action)[1] for _ in range(delay + 1))
    np.testing.assert_array_equal(total, 1.0)


# -- bandit, density, random ---------------------------------------------------------------------------------------
def test_bandit_by_hand():
    env = BanditEnv(means=[1.0, -2.0], reward_std=0.0, episode_length=2)
    assert env.reset()[0] == 0 and walk(env, 1, 0) == [(0, -2.0, False, False), (0, 1.0, True, False)]
    assert env.world.optimum == 2.0
    one, other = Bandit(problem_seed=1), Bandit(problem_seed=2)
    assert len(one.means) == 10 and not np.array_equal(one.means, other.means)
    assert np.array_equal(one.means, Bandit(problem_seed=1).means)
    many = BanditVectorEnv(num_envs=20_000, means=[1.0, -2.0], reward_std=3.0)
    many.reset(seed=0)
    rewards = many.step(np.ones(20_000, np.int64))[1]
    assert abs(rewards.mean() + 2) < 0.1 and abs(rewards.std() - 3) < 0.1


def test_gaussian_density_by_hand():
    from scipy import stats

    env = GaussianDensityEnv(episode_length=2)
    target = env.reset(seed=0)[0]
    assert -1 <= target < 1 and target.shape == (1,)
    following, reward, over, _, _ = env.step(target)
    assert reward == pytest.approx(stats.norm.pdf(0, 0, 0.1)) and not over and following != target
    _, reward, over, _, _ = env.step(following + np.float32(0.1))
    assert reward == pytest.approx(stats.norm.pdf(1) / 0.1, rel=1e-5) and over
    assert env.world.optimum == pytest.approx(2 * stats.norm.pdf(0) / 0.1)
    assert GaussianDensity().optimum == pytest.approx(19.947114)
    plane = GaussianDensityEnv(dimensions=2, scale=0.5)
    target = plane.reset(seed=0)[0]
    off = np.array([0.3, -0.2])
    assert plane.step(target + off)[1] == pytest.approx(
        stats.multivariate_normal([0, 0], 0.25 * np.eye(2)).pdf(off), rel=1e-5
    )


def test_random_env_by_hand():
    env = RandomVectorEnv(num_envs=20_000, end_probability=0.25)
    observation, _ = env.reset(seed=0)
    following, reward, terminated, truncated, _ = env.step(np.zeros(20_000, np.int64))
    assert abs(terminated.mean() - 0.25) < 0.02 and not truncated.any()
    assert abs(reward.mean() - 0.5) < 0.02 and reward.min() >= 0 and reward.max() < 1
    assert not np.any(following == observation)
    assert abs(np.corrcoef(reward, terminated)[0, 1]) < 0.03
    one, zero = RandomEnv(end_probability=1.0), RandomEnv(end_probability=0.0)
    one.reset(), zero.reset()
    assert one.step(0)[2] is True and not any(zero.step(0)[2] for _ in range(50))
    same = RandomWorld(observation_space=NESTED)
    seeds = np.arange(2, dtype=np.uint64)
    assert_same(same.observe(seeds, np.zeros(2, np.int64)), same.observe(seeds, np.ones(2, np.int64)))


def test_parts_of_a_sample_are_independent_and_rounding_leaves_the_bounds():
    box = spaces.Box(-1, 1, (3,), np.float64)
    space = spaces.Dict({"a": box, "b": spaces.Tuple([box, box])})
    leaves = optree.tree_leaves(sampler(space)(np.arange(1000, dtype=np.uint64)))
    assert len(leaves) == 3 and np.all(np.abs(np.corrcoef(np.concatenate(leaves, 1).T) - np.eye(9)) < 0.15)
    fixed = sampler(spaces.Box(1.7, 1.7, (1000,), np.float64))(np.zeros(1, np.uint64))
    assert np.all(fixed == 1.7)  # 1.7 (1 - u) + 1.7 u is often more, or less


@pytest.mark.parametrize("name", LEAVES)
def test_samples_cover_their_space(name):
    space = LEAVES[name]
    samples = sampler(space)(np.arange(4000, dtype=np.uint64))
    assert samples.dtype == space.dtype and samples.shape == (4000, *space.shape)
    rows = samples.reshape(4000, -1).astype(np.float64)
    assert all(space.contains(np.asarray(s) if isinstance(space, spaces.Box) else s) for s in samples[:500])
    if not isinstance(space, spaces.Box):
        low = np.ravel(getattr(space, "start", 0))
        count = np.ravel(getattr(space, "n", 2)) if not hasattr(space, "nvec") else space.nvec.ravel()
        high = low + (np.full(rows.shape[1], 2) if isinstance(space, spaces.MultiBinary) else count) - 1
    elif name == "bounds":
        assert np.all(np.abs(rows.mean(0) - [0, 4, -4, 0]) < 0.1)
        return
    else:
        low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
    np.testing.assert_allclose(rows.mean(0), (low + high) / 2, atol=0.05 * np.max(high - low))
    if samples.dtype.kind in "iu" and name != "image":
        assert np.array_equal(rows.min(0), np.broadcast_to(low, rows.shape[1]))
        assert np.array_equal(rows.max(0), np.broadcast_to(high, rows.shape[1]))
    assert np.all(np.abs(np.corrcoef(rows.T) - np.eye(rows.shape[1])) < 0.08)


def test_streams():
    """The first outputs of SplitMix64 that its authors' C gives for the seed 1234567; and distributions."""
    from scipy import stats

    first = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    streams = Streams(np.array([1234567], np.uint64))
    assert streams.bits(2)[0].tolist() + streams.bits(3)[0].tolist() == first
    assert words(np.array([1234567], np.uint64), 5)[0].tolist() == first
    streams.seed([0])
    assert streams.position.tolist() == [0xE220A8397B1DCDAF]  # the first output for the seed 0
    streams = Streams(np.zeros(500, np.uint64))
    streams.seed(range(500))  # neighbouring seeds, numbers across streams and along them
    uniform, normal = streams.uniform(40), streams.normal(40)
    assert stats.kstest(uniform.ravel(), "uniform").pvalue > 0.01
    assert stats.kstest(uniform[:, 0], "uniform").pvalue > 0.01
    assert stats.kstest(normal.ravel(), "norm").pvalue > 0.01
    assert abs(np.corrcoef(uniform[:-1, 0], uniform[1:, 0])[0, 1]) < 0.1
    assert len(np.unique(uniform)) == uniform.size
    assert math.isclose(np.bincount(streams.integers(5)).mean(), 100)
    part = streams.take(np.array([3]))
    alone = part.uniform(1)
    assert streams.uniform(1)[3] == alone


# -- agents and docs -----------------------------------------------------------------------------------------------
@pytest.mark.learning
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("size", ["2x2", "4x4"])
def test_dqn_solves(size, seed, tmp_path):
    """With the preset of the environment."""
    setting = {"env": f"rlcore/GridWorld{size}-v0", "backend": "numpy"}
    result = rlcore.train("dqn", **setting, seed=seed, evaluation_episodes=2, run_dir=tmp_path)
    assert result.before.mean < 0 and result.after.mean == pytest.approx(OPTIMA[size])
    if size == "2x2":
        agent = rlcore.make_agent("dqn", **setting)
        agent.set_weights(result.agent.get_weights())
        q = agent.executable("q_values", np.arange(2))
        np.testing.assert_allclose(q, action_values(GridWorld(map="2x2"), 0.98)[:2], atol=0.05)


def test_the_page_names_what_is_there():
    page = (Path(__file__).parents[1] / "docs" / "environments.md").read_text()
    rows = {row[1]: row for row in (re.split(r"\s*\|\s*", line) for line in page.splitlines()) if len(row) > 6}
    assert set(IDS) == {name.strip("`") for name in rows if "rlcore/" in name}
    for env_id in IDS:
        row, limit = rows[f"`{env_id}`"], gym.spec(env_id).max_episode_steps
        assert limit is None or f"{limit} steps" in row[5], row
        if name := WORLDS[env_id][2].get("map"):
            assert row[6].split()[0].replace("−", "-") == str(OPTIMA[name]), row
