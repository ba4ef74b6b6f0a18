"""The uniform replay buffer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import optree
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlcore.errors import ConfigError, RLCoreError, SpecError
from rlcore.memories import UniformReplay


def rows(start: int, count: int) -> dict[str, Any]:
    """Transitions start, start + 1, ... whose every part tells their number."""
    i = np.arange(start, start + count)
    return {
        "observation": {"image": np.repeat(i[:, None], 4, 1).astype(np.uint8), "pair": (i.astype(np.float32), i)},
        "action": i,
        "return": i.astype(np.float32),
    }


def stored(replay: UniformReplay) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = replay.state_dict()["arrays"]
    return arrays


@pytest.mark.public_bug("BT-16")
@given(st.integers(1, 12), st.lists(st.integers(0, 30), max_size=12))
def test_any_batches_fill_it_as_single_rows_would(capacity: int, sizes: list[int]) -> None:
    replay, single, total = UniformReplay(capacity, 0), UniformReplay(capacity, 0), 0
    for size in sizes:
        replay.add(rows(total, size))
        for i in range(total, total + size):
            single.add(rows(i, 1))
        total += size
        assert len(replay) == min(total, capacity)
        newest = list(range(max(0, total - capacity), total))
        for path, array in stored(replay).items():
            if len(single):
                np.testing.assert_array_equal(array, stored(single)[path])
            expected = [i % 256 for i in newest] if "image" in path else newest
            assert sorted((array[:, 0] if array.ndim > 1 else array).tolist()) == sorted(expected)
    if len(replay):
        sample = replay.sample(50)
        i = sample["action"]
        assert set(i.tolist()) <= set(newest)
        optree.tree_map(np.testing.assert_array_equal, sample, optree.tree_map(lambda a: a[i], rows(0, total)))


@pytest.mark.public_bug("RB-12")
def test_keeps_nesting_and_dtypes() -> None:
    replay = UniformReplay(10, 0)
    assert replay.nbytes_per_transition == 0 and len(replay) == 0
    replay.add(rows(0, 3))
    assert replay.nbytes_per_transition == 4 + 4 + 8 + 8 + 4 and replay.capacity == 10
    sample = replay.sample(5)
    assert isinstance(sample["observation"]["pair"], tuple) and list(sample) == ["observation", "action", "return"]
    assert sample["observation"]["image"].dtype == np.uint8 and sample["observation"]["image"].shape == (5, 4)
    sample["action"][:] = -1  # a copy
    assert stored(replay)["action"].tolist() == [0, 1, 2]
    alone = UniformReplay(2, 0)
    alone.add(np.arange(3))
    assert set(alone.sample(9).tolist()) == {1, 2}


def test_batches_are_copied() -> None:
    replay, batch = UniformReplay(4, 0), rows(0, 2)
    replay.add(batch)
    batch["action"][:] = 9
    assert stored(replay)["action"].tolist() == [0, 1]


@pytest.mark.parametrize("fill", [7, 40])
def test_sampling_is_uniform(fill: int) -> None:
    """Chi-square statistic of 20,000 draws, part-filled and wrapped around."""
    replay = UniformReplay(20, 3)
    replay.add(rows(0, fill))
    size = min(fill, 20)
    counts = np.bincount(replay.sample(20_000)["action"] - (fill - size), minlength=size)
    assert len(counts) == size
    expected = 20_000 / size
    assert ((counts - expected) ** 2 / expected).sum() < size - 1 + 4 * np.sqrt(2 * (size - 1))
    pairs = replay.sample(4000)["action"].reshape(2, -1)
    assert abs(np.corrcoef(pairs)[0, 1]) < 0.1 and (pairs[0] == pairs[1]).any()  # with replacement


def test_seed_fixes_the_samples() -> None:
    def samples(seed: Any) -> list[int]:
        replay = UniformReplay(100, seed)
        replay.add(rows(0, 100))
        drawn: list[int] = replay.sample(20)["action"].tolist()
        return drawn

    assert samples(1) == samples(1) != samples(2)
    assert samples(np.random.SeedSequence(1).spawn(1)[0]) != samples(1)


@pytest.mark.public_bug("RB-12")
def test_capacity_costs_nothing_until_used() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    before, replay = resident(), UniformReplay(1_000_000, 0)
    replay.add({"observation": np.zeros((2, 1000), np.uint8), "reward": np.zeros(2, np.float32)})
    replay.sample(32)
    assert resident() - before < 20e6


def test_too_little_memory_is_said() -> None:
    with pytest.raises(ConfigError, match=r"transitions of 8 bytes need .* GiB; lower its capacity"):
        UniformReplay(2**58, 0).add(np.zeros(1))


def test_empty_and_wrong() -> None:
    with pytest.raises(ConfigError, match="capacity is 0"):
        UniformReplay(0, 0)
    replay = UniformReplay(4, 0)
    with pytest.raises(RLCoreError, match="empty"):
        replay.sample(1)
    with pytest.raises(SpecError, match="no arrays"):
        replay.add({})
    with pytest.raises(SpecError, match=r"replay: a: got int, expected an array \[M, \.\.\.\]"):
        replay.add({"a": 3})
    with pytest.raises(SpecError, match="same key path"):
        replay.add({"a/b": np.zeros(1), "a": {"b": np.zeros(1)}})
    with pytest.raises(SpecError, match=r"return: got float32\[3\], expected an array \[2, \.\.\.\]"):
        replay.add({**rows(0, 2), "return": np.zeros(3, np.float32)})
    assert len(replay) == 0


@pytest.mark.public_bug("RB-13")
def test_what_does_not_fit_is_named() -> None:
    replay = UniformReplay(4, 0)
    replay.add(rows(0, 2))
    batch = rows(2, 2)
    for path, wrong, message in [
        ("image", np.zeros((2, 4), np.float32), r"observation/image: got float32\[2, 4\], expected uint8\[2, 4\]"),
        ("image", np.zeros((2, 5), np.uint8), r"observation/image: got uint8\[2, 5\]"),
        ("pair", (np.zeros((2, 2), np.float32), np.arange(2)), r"observation/pair/0: got float32\[2, 2\]"),
        ("pair", (np.zeros(1, np.float32), np.arange(2)), r"observation/pair/\d: got"),
        ("pair", (0.0, np.arange(2)), r"observation/pair/0: got float"),
        ("pair", [np.zeros(2, np.float32), np.arange(2)], "nested as"),
    ]:
        with pytest.raises(SpecError, match=message):
            replay.add({**batch, "observation": {**batch["observation"], path: wrong}})
    assert len(replay) == 2 and stored(replay)["action"].tolist() == [0, 1]


@pytest.mark.public_bug("CK-11")
@pytest.mark.public_bug("RB-16")
@pytest.mark.parametrize("fill", [0, 3, 8, 21])
def test_state_round_trip(fill: int) -> None:
    replay = UniformReplay(8, 1)
    if fill:
        replay.add(rows(0, fill))
        replay.sample(5)
    state = replay.state_dict()
    arrays = {path: array.copy() for path, array in state.pop("arrays").items()}
    loaded = UniformReplay(8, 2)
    loaded.add(rows(90, 5))
    loaded.load_state_dict({"arrays": arrays, **json.loads(json.dumps(state))})
    assert len(loaded) == len(replay) == min(fill, 8)
    for start in (fill, fill + 3, fill + 6):
        for one in (replay, loaded):
            one.add(rows(start, 3))
        optree.tree_map(np.testing.assert_array_equal, replay.sample(16), loaded.sample(16))
        optree.tree_map(np.testing.assert_array_equal, stored(replay), stored(loaded))


def test_wrong_states() -> None:
    replay = UniformReplay(8, 1)
    replay.add(rows(0, 2))
    state = replay.state_dict()
    with pytest.raises(ConfigError, match="lacks next, rng"):
        replay.load_state_dict({k: v for k, v in state.items() if k not in ("rng", "next")})
    with pytest.raises(ConfigError, match="capacity 8, this one has 9"):
        UniformReplay(9, 1).load_state_dict(state)
    with pytest.raises(ConfigError, match="holds arrays"):
        replay.load_state_dict({**state, "arrays": {"action": state["arrays"]["action"]}})
    assert len(replay) == 2
