"""Return estimators: golden numbers, definitions, what must be equal, on every backend."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlcore import returns
from rlcore.component import Component, api
from rlcore.errors import ConfigError, SpecError
from rlcore.plugins.session import make_graph_builder
from rlcore.specs import TensorSpec
from rlcore.testing import ComponentTest

OPS = make_graph_builder("numpy").ops
GOLDEN = {case["id"]: case for case in json.loads((Path(__file__).parent / "golden" / "vectors.json").read_text())}


def golden(name):
    """Inputs as [T, 1] by name, the expected values and tolerance; and the wrong answers, to be told apart."""
    case = GOLDEN[name]
    given_ = case["inputs"]
    steps = len(given_["rewards"])
    column = lambda values: np.array(values, np.float64)[:, None]  # noqa: E731
    flags = {k: np.array(given_.get(k, [False] * steps))[:, None] for k in ("terminated", "truncated")}
    data = {"rewards": column(given_["rewards"]), **flags}
    if "values" in given_:
        values = column(given_["values"])
        final = np.full((steps, 1), np.nan)
        for at, value in given_.get("final_values", {}).items():
            final[int(at)] = value
        following = returns.next_values(
            OPS, values, np.array([given_["bootstrap_value"]]), flags["truncated"] & ~flags["terminated"], final
        )
        data |= {"values": values, "next_values": following}
    return data, given_, case["expected"], case["tolerance"]


@pytest.mark.public_bug("BT-01")
@pytest.mark.public_bug("BT-02")
@pytest.mark.public_bug("BT-06")
@pytest.mark.public_bug("BT-07")
@pytest.mark.public_bug("BT-12")
def test_golden_gae_with_a_truncation():
    data, given_, want, tolerance = golden("GAE-TRUNC")
    advantages = returns.gae(OPS, **data, gamma=given_["gamma"], lambda_=given_["gae_lambda"])
    np.testing.assert_allclose(advantages[:, 0], want["advantages"], atol=tolerance)
    np.testing.assert_allclose((advantages + data["values"])[:, 0], want["returns"], atol=tolerance)
    data.pop("values")
    targets = returns.lambda_returns(OPS, **data, gamma=given_["gamma"], lambda_=given_["gae_lambda"])
    np.testing.assert_allclose(targets[:, 0], want["returns"], atol=tolerance)


@pytest.mark.public_bug("BT-03")
def test_golden_lambda_0_keeps_the_terminal_reward():
    data, given_, want, tolerance = golden("GAE-LAM0")
    following = np.array([[given_["values_of"]["B"]], [np.nan]])
    targets = returns.lambda_returns(
        OPS, **data, next_values=following, gamma=given_["gamma"], lambda_=given_["gae_lambda"]
    )
    np.testing.assert_allclose(targets[:, 0], want["targets"], atol=tolerance)


@pytest.mark.public_bug("BT-16")
@pytest.mark.parametrize("name", ["NSTEP", "NSTEP-TRUNC"])
def test_golden_n_step(name):
    data, given_, want, tolerance = golden(name)
    options = {"gamma": given_["gamma"], "n": given_["n"]}
    zero = np.zeros((4, 1))
    sums = returns.n_step_returns(OPS, **data, next_values=zero, **options)
    np.testing.assert_allclose(sums[:, 0], want["returns"], atol=tolerance)
    discounts = returns.n_step_returns(OPS, **data, next_values=zero + 1, **options) - sums
    np.testing.assert_allclose(discounts[:, 0], want["bootstrap_discount"], atol=tolerance)


@pytest.mark.public_bug("BT-18")
def test_golden_vtrace():
    data, given_, want, tolerance = golden("VTRACE")
    rhos = np.array(given_["rho"], np.float64)[:, None]
    clips = {"clip_rho": given_["clip_rho"], "clip_c": given_["clip_c"]}
    result = returns.vtrace(OPS, rhos, **data, gamma=given_["gamma"], **clips)
    np.testing.assert_allclose(result.values[:, 0], want["vs"], atol=tolerance)
    np.testing.assert_allclose(result.advantages[:, 0], want["pg_advantages"], atol=tolerance)


@pytest.mark.public_bug("BT-04")
def test_golden_vtrace_does_not_look_over_a_truncation():
    data, given_, want, tolerance = golden("VTRACE-TRUNC")
    rhos = np.array(given_["rho"], np.float64)[:, None]
    result = returns.vtrace(OPS, rhos, **data, gamma=given_["gamma"])
    np.testing.assert_allclose(result.advantages[:, 0], want["pg_advantages"], atol=tolerance)


# -- definitions -------------------------------------------------------------------------------------------------
@st.composite
def fragments(draw):
    steps, envs = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = draw(st.sampled_from([0.0, 0.2, 0.6]))
    terminated = rng.random((steps, envs)) < ends
    truncated = ~terminated & (rng.random((steps, envs)) < ends)  # both at once: below
    both = rng.random((steps, envs)) < 0.1
    data = {
        "rewards": rng.standard_normal((steps, envs)),
        "values": rng.standard_normal((steps, envs)),
        "terminated": terminated,
        "truncated": truncated | (terminated & both),
        "rhos": np.exp(rng.standard_normal((steps, envs))),
    }
    if draw(st.booleans()):
        data["valid"] = rng.random((steps, envs)) < 0.8
    final, bootstrap = rng.standard_normal((steps, envs)), rng.standard_normal(envs)
    data["next_values"] = returns.next_values(OPS, data["values"], bootstrap, data["truncated"], final)
    options = {"gamma": draw(st.sampled_from([0.0, 0.5, 0.99, 1.0])), "lambda_": draw(st.sampled_from([0.0, 0.7, 1.0]))}
    return data, options


def column_by_definition(name, d, gamma, lambda_=1.0, n=3, clip=1.0):
    """One env, straight from the definitions: for each t a sum forward in time, O(T^2)."""
    steps = len(d["rewards"])
    valid = d.get("valid", np.ones(steps, bool))

    def goes_on(t):
        return not d["terminated"][t] and not d["truncated"][t] and t + 1 < steps and valid[t] and valid[t + 1]

    def after(t):
        return 0.0 if d["terminated"][t] else d["next_values"][t]

    def n_step(t, k):
        total, weight = 0.0, 1.0
        for _ in range(k):
            total += weight * d["rewards"][t]
            weight *= gamma
            if not goes_on(t):
                return total + weight * after(t), True
            t += 1
        return total + weight * after(t - 1), False

    out = np.zeros(steps)
    extra = np.zeros(steps)
    for t in np.flatnonzero(valid):
        if name == "n_step_returns":
            out[t] = n_step(t, n)[0]
        elif name in ("lambda_returns", "discounted_returns", "gae"):
            # (1 - lambda) sum lambda^(k-1) G^(k), what is left going to the longest.
            weight, k = 1.0, 1
            while True:
                target, last = n_step(t, k)
                if last:
                    out[t] += weight * target
                    break
                out[t] += weight * (1.0 - lambda_) * target
                weight *= lambda_
                k += 1
            out[t] -= d["values"][t] if name == "gae" else 0.0
        else:  # V-trace and Retrace: V + sum of discounted corrections
            base = d["values"][t]
            out[t], weight, s = base, 1.0, t
            while True:
                delta = d["rewards"][s] + gamma * after(s) - d["values"][s]
                out[t] += weight * delta * (min(clip, d["rhos"][s]) if name == "vtrace" else 1.0)
                if not goes_on(s):
                    break
                trace = lambda_ * min(clip, d["rhos"][s if name == "vtrace" else s + 1])
                weight *= gamma * trace
                s += 1
    if name == "vtrace":
        for t in np.flatnonzero(valid):
            ahead = out[t + 1] if goes_on(t) else after(t)
            extra[t] = min(clip, d["rhos"][t]) * (d["rewards"][t] + gamma * ahead - d["values"][t])
    return out, extra


def estimate(name, data, ops=OPS, **options):
    keys = {
        "discounted_returns": (),
        "lambda_returns": (),
        "n_step_returns": (),
        "gae": ("values",),
        "vtrace": ("rhos", "values"),
        "retrace": ("rhos", "q_values"),
    }[name]
    data = {**data, "q_values": data["values"]}
    chosen = {k: data[k] for k in ("rewards", "next_values", "terminated", "truncated", *keys)}
    return getattr(returns, name)(ops, **chosen, **options, **({"valid": data["valid"]} if "valid" in data else {}))


def options_of(name, options):
    if name == "n_step_returns":
        return {"gamma": options["gamma"], "n": 3}
    return {"gamma": options["gamma"]} if name == "discounted_returns" else options


NAMES = ["discounted_returns", "lambda_returns", "n_step_returns", "gae", "vtrace", "retrace"]


@pytest.mark.public_bug("BT-08")
@pytest.mark.public_bug("BT-10")
@pytest.mark.public_bug("BT-11")
@pytest.mark.public_bug("BT-17")
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(fragments())
def test_the_definition(name, fragment):
    data, options = fragment
    options = options_of(name, options)
    got = estimate(name, data, **options)
    for b in range(data["rewards"].shape[1]):
        own = {k: v[:, b] for k, v in data.items()}
        want, extra = column_by_definition(name, own, **options)
        if name == "vtrace":
            np.testing.assert_allclose(got.advantages[:, b], extra, atol=1e-9)
        np.testing.assert_allclose((got.values if name == "vtrace" else got)[:, b], want, atol=1e-9)


@pytest.mark.public_bug("BT-04")
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(fragments())
def test_episodes_one_after_the_other_are_as_each_alone(name, fragment):
    data, options = fragment
    data = {k: v for k, v in data.items() if k != "valid"}
    options = options_of(name, options)
    whole = np.asarray(estimate(name, data, **options))
    whole = whole if name == "vtrace" else whole[None]
    for b in range(data["rewards"].shape[1]):
        start = 0
        ends = np.flatnonzero(data["terminated"][:, b] | data["truncated"][:, b])
        for end in [*ends, data["rewards"].shape[0] - 1]:
            if end < start:
                continue
            own = {k: v[start : end + 1, b : b + 1] for k, v in data.items()}
            alone = np.asarray(estimate(name, own, **options))
            alone = alone if name == "vtrace" else alone[None]
            np.testing.assert_allclose(whole[:, start : end + 1, b], alone[:, :, 0], atol=1e-9)
            start = end + 1


@settings(max_examples=40, deadline=None)
@given(fragments(), st.data())
def test_two_windows_are_as_the_whole(fragment, choose):
    """What the second window says of its first step is what the first window is bootstrapped with."""
    data, options = fragment
    gamma, lambda_ = options["gamma"], options["lambda_"]
    steps = data["rewards"].shape[0]
    cut = choose.draw(st.integers(1, steps)) if steps > 1 else 1
    keys = ("rewards", "next_values", "terminated", "truncated", *(("valid",) if "valid" in data else ()))
    whole = returns.lambda_returns(OPS, **{k: data[k] for k in keys}, **options)
    second = {k: data[k][cut:] for k in keys}
    first = {k: data[k][:cut].copy() for k in keys}
    if cut < steps:
        later = returns.lambda_returns(OPS, **second, **options)
        np.testing.assert_allclose(later, whole[cut:], atol=1e-9)
        joined = ~(data["terminated"] | data["truncated"])[cut - 1]
        if "valid" in data:
            joined &= data["valid"][cut]
        mixed = (1 - lambda_) * first["next_values"][-1] + lambda_ * later[0]
        first["next_values"][-1] = np.where(joined, mixed, first["next_values"][-1])
    np.testing.assert_allclose(returns.lambda_returns(OPS, **first, **options), whole[:cut], atol=1e-9)
    assert gamma == options["gamma"]


@pytest.mark.public_bug("BT-05")
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(fragments())
def test_numbers_and_arrays_as_coefficients(name, fragment):
    data, options = fragment
    options = options_of(name, options)
    shape = data["rewards"].shape
    arrays = {k: v if k == "n" else np.full(shape, v) for k, v in options.items()}
    np.testing.assert_allclose(estimate(name, data, **options), estimate(name, data, **arrays), atol=1e-12)


@pytest.mark.public_bug("BT-15")
@settings(max_examples=40, deadline=None)
@given(fragments())
def test_lambda_0_is_one_step_and_lambda_1_monte_carlo(fragment):
    data, options = fragment
    keys = ("rewards", "next_values", "terminated", "truncated", *(("valid",) if "valid" in data else ()))
    data, gamma = {k: data[k] for k in keys}, options["gamma"]
    one_step = returns.n_step_returns(OPS, **data, gamma=gamma, n=1)
    np.testing.assert_allclose(returns.lambda_returns(OPS, **data, gamma=gamma, lambda_=0.0), one_step, atol=1e-12)
    longest = returns.n_step_returns(OPS, **data, gamma=gamma, n=10_000)
    np.testing.assert_allclose(returns.discounted_returns(OPS, **data, gamma=gamma), longest, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(fragments(), st.integers(1, 5))
def test_padding_changes_nothing(fragment, more):
    data, options = fragment
    data = {k: v for k, v in data.items()}
    steps, envs = data["rewards"].shape
    valid = data.pop("valid", np.ones((steps, envs), bool))
    rng = np.random.default_rng(0)
    padded = {
        k: np.concatenate([v, np.full((more, envs), np.nan) if v.dtype == float else rng.random((more, envs)) < 0.5])
        for k, v in data.items()
    }
    padded["valid"] = np.concatenate([valid, np.zeros((more, envs), bool)])
    for name in NAMES:
        chosen = options_of(name, options)
        want = np.asarray(estimate(name, {**data, "valid": valid}, **chosen))
        got = np.asarray(estimate(name, padded, **chosen))
        np.testing.assert_allclose(got[..., :steps, :], want, atol=1e-12)
        assert not got[..., steps:, :].any()


@pytest.mark.public_bug("BT-02")
def test_an_endless_task_that_is_cut_off_again_and_again():
    """Reward 1 for ever, cut off each 5 steps: with the right values every target is 1 / (1 - gamma)."""
    steps, gamma = 20, 0.9
    value = np.full((steps, 1), 1 / (1 - gamma))
    cut = (np.arange(steps) % 5 == 4)[:, None]
    data = {"rewards": np.ones((steps, 1)), "terminated": np.zeros((steps, 1), bool), "truncated": cut}
    following = returns.next_values(OPS, value, value[0], cut, value)
    for lambda_ in (0.0, 0.5, 1.0):
        targets = returns.lambda_returns(OPS, **data, next_values=following, gamma=gamma, lambda_=lambda_)
        np.testing.assert_allclose(targets, value)


# -- every backend -----------------------------------------------------------------------------------------------
T = 13
COLUMN = TensorSpec((T, "B"), "float32", -2.0, 2.0)
FLAG = TensorSpec((T, "B"), "bool")


class Estimators(Component):
    @api
    def __call__(self, rewards, values, bootstrap, final_values, log_rhos, terminated, truncated, valid):
        ops = self.ops
        data = {
            "rewards": rewards,
            "values": values,
            "rhos": ops.exp(log_rhos),
            "terminated": terminated,
            "truncated": truncated,
            "next_values": returns.next_values(ops, values, bootstrap, truncated, final_values),
            "valid": valid,
        }
        options = {"gamma": 0.97, "lambda_": 0.9}
        out = {name: estimate(name, data, ops, **options_of(name, options)) for name in NAMES}
        out["vtrace"] = {"values": out["vtrace"].values, "advantages": out["vtrace"].advantages}
        return out


@pytest.mark.public_bug("BT-19")
def test_every_backend(build):
    names = ["rewards", "values", "bootstrap", "final_values", "log_rhos", "terminated", "truncated", "valid"]
    specs = dict.fromkeys(names, COLUMN)
    specs |= dict.fromkeys(["terminated", "truncated", "valid"], FLAG)
    specs["bootstrap"] = TensorSpec(("B",), "float32", -2.0, 2.0)
    test = ComponentTest(Estimators(), specs, **build)
    rng = np.random.default_rng(0)
    for envs in (4, 1):
        arrays = {n: rng.standard_normal((T, envs)).astype(np.float32) for n in names}
        arrays["bootstrap"] = rng.standard_normal(envs).astype(np.float32)
        for flag, share in (("terminated", 0.15), ("truncated", 0.15), ("valid", 0.9)):
            arrays[flag] = rng.random((T, envs)) < share
        test.check_against_numpy(*arrays.values(), rtol=1e-4, atol=1e-5)


# -- what does not fit -------------------------------------------------------------------------------------------
def test_mistakes_are_named():
    zeros, flags = np.zeros((3, 2)), np.zeros((3, 2), bool)
    with pytest.raises(SpecError, match=r"gae: got arrays of shapes \[3, 2\], \[3, 2\], \[3, 2\], \[3, 2\], \[3, 1\]"):
        returns.gae(OPS, zeros, zeros[:, :1], zeros, flags, flags, gamma=0.9, lambda_=0.9)
    with pytest.raises(SpecError, match="flags, got float64"):
        returns.lambda_returns(OPS, zeros, zeros, zeros, flags, gamma=0.9, lambda_=0.9)
    with pytest.raises(ConfigError, match="n is 0"):
        returns.n_step_returns(OPS, zeros, zeros, flags, flags, gamma=0.9, n=0)
    with pytest.raises(ConfigError, match="give truncated and final_values, or neither"):
        returns.next_values(OPS, zeros, zeros[0], flags)
