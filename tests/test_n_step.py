"""n-step transitions built step by step, against returns of whole fragments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlcore.errors import ConfigError, SpecError
from rlcore.memories import NStepBuilder
from rlcore.memories.n_step import check_horizon

GOLDEN = {case["id"]: case for case in json.loads((Path(__file__).parent / "golden" / "vectors.json").read_text())}


def n_step_returns(
    rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, *, gamma: float, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n-step returns of a fragment without their bootstrap term.

    With k <= n rewards summed from step t on, the target (Sutton & Barto 2018, eq. 7.1) is

        returns[t] + bootstrap_discount[t] * V(next observation of step bootstrap_index[t]),

    where k is n, or less where the episode or the fragment ends before. ``bootstrap_discount`` is gamma^k, or 0
    if the last step summed terminated. A truncated episode is bootstrapped from its own last observation; nothing
    is summed across an end of either kind.

    :param rewards: [T] or [T, B], any real dtype.
    :param terminated: bool, same shape: the episode ended for good with this step.
    :param truncated: bool, same shape: it was cut off after this step.
    :return: ``returns`` float64, ``bootstrap_discount`` float64 and ``bootstrap_index`` int64 (along T, t..t+n-1),
        each of the shape of ``rewards``.
    :raises ConfigError: unless n >= 1 and 0 <= gamma <= 1.
    :raises SpecError: if the shapes differ or have neither one nor two axes.
    """
    check_horizon(gamma=gamma, n=n)
    rewards = np.asarray(rewards, np.float64)
    terminated, truncated = np.asarray(terminated, np.bool_), np.asarray(truncated, np.bool_)
    shape = rewards.shape
    if len(shape) not in (1, 2) or terminated.shape != shape or truncated.shape != shape:
        given = f"rewards {shape}, terminated {terminated.shape}, truncated {truncated.shape}"
        raise SpecError(f"n_step_returns: got {given}", expected="three times [T] or [T, B]")
    steps = shape[0]
    ended = terminated | truncated
    returns, discount = np.zeros(shape), np.ones(shape)
    index = np.broadcast_to(np.arange(steps).reshape((-1,) + (1,) * (len(shape) - 1)), shape).copy()
    going = np.ones(shape, np.bool_)  # step t + k belongs to the sum of t
    for k in range(min(n, steps)):
        first = steps - k  # of these the step t + k lies in the fragment
        going[first:] = False
        now = going[:first]
        returns[:first] += np.where(now, gamma**k * rewards[k:], 0.0)
        discount[:first] = np.where(now, gamma ** (k + 1), discount[:first])
        index[:first] += now if k else 0
        now &= ~ended[k:]
    discount[np.take_along_axis(terminated, index, 0)] = 0.0
    return returns, discount, index


def golden(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any], dict[str, Any], float]:
    case = GOLDEN[name]
    given_, none = case["inputs"], [False] * len(case["inputs"]["rewards"])
    masks = (np.array(given_.get(key, none)) for key in ("terminated", "truncated"))
    options = {"gamma": given_["gamma"], "n": given_["n"]}
    return np.array(given_["rewards"], np.float32), *masks, options, case["expected"], case["tolerance"]


def feed(
    builder: NStepBuilder, rewards: Any, terminated: Any, truncated: Any, valid: Any = None
) -> list[dict[str, Any]]:
    """Rows [T, B]; observations are the global step (and env) before, next observations those after it."""
    steps, envs = rewards.shape
    batches = []
    for t in range(steps):
        at = np.stack([np.full(envs, t), np.arange(envs)], -1).astype(np.float32)
        on = np.ones(envs, bool) if valid is None else valid[t]
        action = np.full(envs, t, np.int64)
        following = at + np.array([1000, 0], np.float32)
        batch = builder.add(at, action, rewards[t], terminated[t], truncated[t], following, on)
        if batch is not None:
            batches.append(batch)
    return batches


@pytest.mark.public_bug("BT-16")
@pytest.mark.public_bug("RB-15")
@pytest.mark.parametrize("name", ["NSTEP", "NSTEP-TRUNC"])
def test_golden(name: str) -> None:
    rewards, terminated, truncated, options, want, tolerance = golden(name)
    returns, discount, index = n_step_returns(rewards, terminated, truncated, **options)
    np.testing.assert_allclose(returns, want["returns"], atol=tolerance)
    np.testing.assert_allclose(discount, want["bootstrap_discount"], atol=tolerance)
    assert index.tolist() == [2, 3, 3, 3]
    states = ["s1", "s2", "s3", "final_observation"]  # the next observation of each step
    if "bootstrap_state" in want:
        assert [states[i] for i in index] == want["bootstrap_state"]

    builder = NStepBuilder(1, options["n"], options["gamma"])
    batches = feed(builder, *(x[:, None] for x in (rewards, terminated, truncated)))
    got = {key: np.concatenate([b[key] for b in batches]) for key in batches[0]}
    np.testing.assert_allclose(got["return"], want["returns"], atol=tolerance)
    np.testing.assert_allclose(got["discount"], want["bootstrap_discount"], atol=tolerance)
    assert got["next_observation"][:, 0].tolist() == [1000.0 + i for i in index]


def by_definition(
    rewards: Any, terminated: Any, truncated: Any, gamma: float, n: int
) -> list[tuple[float, float, int]]:
    """One env [T]: a loop that follows the words of the definition."""
    out = []
    for t in range(len(rewards)):
        total, k = 0.0, 0
        while True:
            total += gamma**k * rewards[t + k]
            k += 1
            last = t + k - 1
            if k == n or terminated[last] or truncated[last] or last == len(rewards) - 1:
                break
        out.append((total, 0.0 if terminated[last] else gamma**k, last))
    return out


@st.composite
def fragments(draw: st.DrawFn, skips: bool = False) -> dict[str, Any]:
    steps, envs = draw(st.integers(1, 20)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    often = draw(st.sampled_from([0.0, 0.1, 0.4, 1.0]))
    terminated, truncated = (rng.random((2, steps, envs)) < often / 2).astype(bool)
    valid = rng.random((steps, envs)) < draw(st.sampled_from([1.0, 0.7] if skips else [1.0]))
    return {
        "rewards": rng.normal(size=(steps, envs)),
        "terminated": terminated,
        "truncated": truncated,
        "valid": valid,
        "gamma": draw(st.sampled_from([0.0, 0.5, 0.9, 1.0])),
        "n": draw(st.integers(1, 6)),
    }


@pytest.mark.public_bug("BT-10")
@given(fragments())
def test_returns_follow_the_definition(f: dict[str, Any]) -> None:
    arrays, options = (f["rewards"], f["terminated"], f["truncated"]), {"gamma": f["gamma"], "n": f["n"]}
    together = n_step_returns(*arrays, **options)
    for b in range(arrays[0].shape[1]):
        own = [a[:, b] for a in arrays]
        want, alone_ = by_definition(*own, f["gamma"], f["n"]), n_step_returns(*own, **options)
        for got, alone, column in zip(together, alone_, zip(*want, strict=True), strict=True):
            np.testing.assert_allclose(got[:, b], column, atol=1e-12)
            np.testing.assert_array_equal(got[:, b], alone)


@settings(max_examples=300)
@given(fragments(skips=True))
@pytest.mark.public_bug("BT-16")
@pytest.mark.public_bug("RB-15")
def test_builder_gives_the_returns(f: dict[str, Any]) -> None:
    """Each env's completed transitions, in order, are those of ``n_step_returns`` on its valid rows alone."""
    rewards, terminated, truncated, valid = f["rewards"], f["terminated"], f["truncated"], f["valid"]
    envs, n = rewards.shape[1], f["n"]
    garbage = np.where(valid, rewards, np.nan)  # nothing of a row that is left out may count
    batches = feed(NStepBuilder(envs, n, f["gamma"]), garbage, terminated, truncated, valid)
    for batch in batches:
        assert batch["return"].dtype == batch["discount"].dtype == np.float32
        order = list(zip(batch["observation"][:, 1], batch["action"], strict=True))
        assert order == sorted(order)  # by env, oldest first
    for b in range(envs):
        rows = np.flatnonzero(valid[:, b])
        got = [
            (o[0], a, r, d, last[0])
            for batch in batches
            for o, a, r, d, last in zip(*(batch[k] for k in batch), strict=True)
            if o[1] == b
        ]
        columns = (x[rows, b] for x in (rewards, terminated, truncated))
        returns, discount, index = n_step_returns(*columns, gamma=f["gamma"], n=n)
        ended = (terminated | truncated)[rows, b]
        complete = [t for t in range(len(rows)) if index[t] - t == n - 1 or ended[index[t]]]
        assert len(got) == len(complete)
        for (o, a, r, d, last), t in zip(got, complete, strict=True):
            assert o == a == rows[t] and last == 1000 + rows[index[t]]
            np.testing.assert_allclose([r, d], [returns[t], discount[t]], atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_trees(n: int) -> None:
    """A nested observation and action give the same as each of their arrays alone."""
    rng = np.random.default_rng(n)
    nested, flat = NStepBuilder(2, n, 0.9), NStepBuilder(2, n, 0.9)
    for _ in range(40):
        a, b = rng.normal(size=(2, 2, 3)).astype(np.float32)
        action, reward = rng.integers(0, 5, 2), rng.normal(size=2)
        masks = rng.random((3, 2)) < [[0.1], [0.1], [0.9]]
        tree = nested.add(
            {"z": a, "a": (a[:, 0], action)},
            (action, b),
            reward,
            *masks[:2],
            {"z": b, "a": (b[:, 0], action)},
            masks[2],
        )
        plain = flat.add(a, action, reward, *masks[:2], b, masks[2])
        assert (tree is None) == (plain is None)
        if tree is not None and plain is not None:
            assert isinstance(tree["action"], tuple) and isinstance(tree["observation"]["a"], tuple)
            np.testing.assert_array_equal(tree["action"][0], plain["action"])
            for key in ("observation", "next_observation"):
                np.testing.assert_array_equal(tree[key]["z"], plain[key])
                np.testing.assert_array_equal(tree[key]["a"][0], plain[key][:, 0])


def test_pending_steps_are_copies_and_can_be_dropped() -> None:
    builder, buffer, on, off = NStepBuilder(1, 2, 0.5), np.zeros((1, 1)), np.ones(1, bool), np.zeros(1, bool)
    one, action = np.ones(1), np.zeros(1, np.int64)
    assert builder.add(buffer, action, one, off, off, buffer + 1, on) is None
    buffer[:] = 7  # the env reuses its array
    batch = builder.add(buffer, action, one, off, off, buffer + 1, on)
    assert batch is not None and batch["observation"].tolist() == [[0]] and batch["return"].tolist() == [1.5]
    builder.reset()
    assert builder.add(buffer, action, one, off, off, buffer + 1, on) is None
    kept = optree.tree_map(np.copy, batch)
    builder.add(buffer + 3, action, one, on, off, buffer + 4, on)
    optree.tree_map(np.testing.assert_array_equal, batch, kept)


@pytest.mark.public_bug("RB-13")
def test_what_does_not_fit_is_named() -> None:
    observation, action, row, mask = {"x": np.zeros((2, 3))}, np.zeros(2, np.int64), np.zeros(2), np.zeros(2, bool)
    for n in (1, 3):
        builder = NStepBuilder(2, n, 0.9)
        with pytest.raises(SpecError, match=r"observation/x: got float64\[3, 2\], expected an array \[2, \.\.\.\]"):
            builder.add({"x": np.zeros((3, 2))}, action, row, mask, mask, observation, ~mask)
        builder.add(observation, action, row, mask, mask, observation, ~mask)
        with pytest.raises(SpecError, match=r"next_observation/x: got float64\[1, 3\], expected float64\[2, 3\]"):
            builder.add(observation, action, row, mask, mask, {"x": np.zeros((1, 3))}, ~mask)
        with pytest.raises(SpecError, match=r"action: got int32\[2\], expected int64\[2\]"):
            builder.add(observation, action.astype(np.int32), row, mask, mask, observation, ~mask)
        with pytest.raises(SpecError, match="observation is nested as"):
            builder.add({"y": observation["x"]}, action, row, mask, mask, observation, ~mask)
        with pytest.raises(SpecError, match=r"reward: got float64\[2, 1\], expected a number \[2\]"):
            builder.add(observation, action, row[:, None], mask, mask, observation, ~mask)
        with pytest.raises(SpecError, match=r"truncated: got float64\[2\], expected bool \[2\]"):
            builder.add(observation, action, row, mask, row, observation, ~mask)
    with pytest.raises(ConfigError, match="n is 0"):
        NStepBuilder(1, 0, 0.9)
    with pytest.raises(ConfigError, match=r"gamma is 1\.5"):
        n_step_returns(row, mask, mask, gamma=1.5, n=1)
    with pytest.raises(SpecError, match="n_step_returns: got rewards"):
        n_step_returns(row, mask, mask[:1], gamma=1, n=1)
