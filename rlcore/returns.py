"""Return estimators over whole fragments: pure functions over Ops, on arrays [T, B] (time, then environments).

One convention for all. ``terminated[t]`` and ``truncated[t]`` say how the episode ended with step t, if it did.
``next_values[t]`` is the value of step t's own next observation: of the episode's final observation where it was
truncated, never of the one after a reset; :func:`next_values` makes it. Nothing is ever carried across an end of
either kind: a termination is worth nothing after it, a truncation is bootstrapped. The last step of the fragment is
bootstrapped as well, if its episode goes on. ``valid[t]`` is False for rows that are no steps: padding behind a ragged
sequence, rows of an automatic reset; a step before such a row is bootstrapped, and results are 0 in it. What stands
where nothing is to be read (next values of a termination, invalid rows) may be anything, NaN too.

``gamma``, ``lambda_`` and clips are numbers or arrays that broadcast to [T, B]. T must be fixed: fragments of one
length share a graph. The recurrences x[t] = b[t] + a[t] x[t+1] are computed by doubling (Hillis & Steele 1986):
log2(T) vectorised steps instead of T small ones.

Give ``ops`` of any backend: inside a component ``self.ops``, elsewhere ``rlcore.make_graph_builder("numpy").ops``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rlcore.errors import ConfigError, SpecError
from rlcore.ops import Array, Ops

Number = Any  # a float, or an array that broadcasts to [T, B]


class VTrace(NamedTuple):
    """:ivar values: targets of the values, float [T, B]. ``advantages``: for the policy gradient, float [T, B]."""

    values: Array
    advantages: Array


def next_values(
    ops: Ops, values: Array, bootstrap_value: Array, truncated: Array | None = None, final_values: Array | None = None
) -> Array:
    """The value of each step's own next observation.

    :param values: float [T, B], of the observations.
    :param bootstrap_value: float [B], of the observation after the last step.
    :param truncated: bool [T, B]; where it holds, ``final_values`` is taken: float [T, B], of the last observation of
        the episode that was cut off. Elsewhere its content does not matter. Both or neither.
    :return: float [T, B]
    """
    if (truncated is None) != (final_values is None):
        raise ConfigError("next_values: give truncated and final_values, or neither")
    following = ops.concat([values[1:], ops.expand_dims(bootstrap_value, 0)], 0)
    return following if truncated is None else ops.where(truncated, final_values, following)


def discounted_returns(
    ops: Ops,
    rewards: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: Number,
    valid: Array | None = None,
) -> Array:
    """G[t] = r[t] + gamma G[t+1] to the end of the episode or fragment, bootstrapped there (Sutton & Barto 2018, 3.9).

    :return: float [T, B]
    """
    return lambda_returns(
        ops, rewards, next_values, terminated, truncated, gamma=gamma, lambda_=1.0, valid=valid
    )  # fmt: skip


def lambda_returns(
    ops: Ops,
    rewards: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: Number,
    lambda_: Number,
    valid: Array | None = None,
) -> Array:
    """TD(lambda) targets (Sutton & Barto 2018, eq. 12.18, for values):

        G[t] = r[t] + gamma ((1 - lambda) V'[t] + lambda G[t+1])

    ``lambda_`` 0 gives one-step targets, 1 discounted returns.

    :return: float [T, B]
    """
    only, going = _masks(ops, "lambda_returns", rewards, terminated, truncated, valid, next_values)
    following = ops.where(terminated, 0.0, next_values)
    carry = lambda_ * going
    target = only(rewards + gamma * (1.0 - carry) * following)
    return only(_recurrence(ops, gamma * carry, target))


def gae(
    ops: Ops,
    rewards: Array,
    values: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: Number,
    lambda_: Number,
    valid: Array | None = None,
) -> Array:
    """Generalised advantage estimation (Schulman et al. 2016, eq. 16):

        A[t] = delta[t] + gamma lambda A[t+1],   delta[t] = r[t] + gamma V'[t] - V[t]

    Value targets are ``gae(...) + values``.

    :return: float [T, B]
    """
    only, going = _masks(ops, "gae", rewards, terminated, truncated, valid, next_values, values)
    delta = only(rewards + gamma * ops.where(terminated, 0.0, next_values) - values)
    return only(_recurrence(ops, gamma * lambda_ * going, delta))


def n_step_returns(
    ops: Ops,
    rewards: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: Number,
    n: int,
    valid: Array | None = None,
) -> Array:
    """r[t] + ... + gamma^(k-1) r[t+k-1] + gamma^k V'[t+k-1] (Sutton & Barto 2018, eq. 7.1); k is n, or less where the
    episode or the fragment ends before.

    :return: float [T, B]
    :raises ConfigError: unless n >= 1.
    """
    if n < 1:
        raise ConfigError(f"n_step_returns: n is {n}, expected 1 or more steps")
    only, going = _masks(ops, "n_step_returns", rewards, terminated, truncated, valid, next_values)
    following = ops.where(terminated, 0.0, next_values)
    target = only(rewards + gamma * following)
    for _ in range(min(n, rewards.shape[0]) - 1):
        target = only(rewards + gamma * (going * _shift(ops, target, 1) + (1.0 - going) * following))
    return target


def vtrace(
    ops: Ops,
    rhos: Array,
    rewards: Array,
    values: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: Number,
    lambda_: Number = 1.0,
    clip_rho: Number = 1.0,
    clip_c: Number = 1.0,
    clip_policy_rho: Number = 1.0,
    valid: Array | None = None,
) -> VTrace:
    """V-trace (Espeholt et al. 2018, eq. 1 and section 4.2; lambda as in its remark 2):

        vs[t] = V[t] + rho[t] delta[t] + gamma c[t] (vs[t+1] - V[t+1])
        advantages[t] = rho'[t] (r[t] + gamma vs[t+1] - V[t])

    with rho, c and rho' the importance ratios clipped from above; c also times lambda.

    :param rhos: float [T, B]: pi(a|s) / mu(a|s), not clipped. Use ``exp(log pi - log mu)``.
    """
    only, going = _masks(ops, "vtrace", rewards, terminated, truncated, valid, next_values, values, rhos)
    following, rhos = ops.where(terminated, 0.0, next_values), only(rhos)
    delta = only(ops.minimum(rhos, clip_rho) * (rewards + gamma * following - values))
    targets = only(values + _recurrence(ops, gamma * lambda_ * ops.minimum(rhos, clip_c) * going, delta))
    ahead = going * _shift(ops, targets, 1) + (1.0 - going) * following
    advantages = only(ops.minimum(rhos, clip_policy_rho) * (rewards + gamma * ahead - values))
    return VTrace(targets, advantages)


def retrace(
    ops: Ops,
    rhos: Array,
    rewards: Array,
    q_values: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: Number,
    lambda_: Number = 1.0,
    clip: Number = 1.0,
    valid: Array | None = None,
) -> Array:
    """Retrace(lambda) targets of action values (Munos et al. 2016, eq. 3 and 4):

        Q[t] <- r[t] + gamma (E_pi Q'[t] + c[t+1] (Q[t+1] - Q(s[t+1], a[t+1]))),   c = lambda min(clip, rho)

    :param rhos: float [T, B]: pi(a|s) / mu(a|s), not clipped; that of the first step has no effect.
    :param q_values: float [T, B]: Q(s[t], a[t]) of the actions taken.
    :param next_values: float [T, B]: the expectation of Q(s', .) under pi, of each step's own next observation.
    :return: float [T, B]
    """
    only, going = _masks(ops, "retrace", rewards, terminated, truncated, valid, next_values, q_values, rhos)
    delta = only(rewards + gamma * ops.where(terminated, 0.0, next_values) - q_values)
    carry = _shift(ops, lambda_ * ops.minimum(only(rhos), clip), 1) * going
    return only(q_values + _recurrence(ops, gamma * carry, delta))


# ----------------------------------------------------------------------------------------------------------------
def _masks(
    ops: Ops,
    name: str,
    rewards: Array,
    terminated: Array,
    truncated: Array,
    valid: Array | None,
    *others: Array,
) -> tuple[Callable[[Array], Array], Array]:
    """A function that puts 0 into rows that are no steps, and 1 where step t+1 carries on the episode of step t.

    :raises SpecError: if an array is not [T, B], or a flag no bool.
    """
    flags = (terminated, truncated, *(() if valid is None else (valid,)))
    shape = tuple(rewards.shape)
    if len(shape) != 2 or any(tuple(a.shape) != shape for a in (*flags, *others)):
        given = ", ".join(str(list(a.shape)) for a in (rewards, *flags, *others))
        raise SpecError(f"{name}: got arrays of shapes {given}", expected="all [T, B]")
    for flag in flags:
        if "bool" not in str(flag.dtype):
            raise SpecError(f"{name}: terminated, truncated and valid are flags, got {flag.dtype}", expected="bool")
    ones = ops.ones_like(rewards)
    if valid is None:
        return _same, ops.where(terminated | truncated, 0.0, ones) * _shift(ops, ones, 1)
    here = ops.where(valid, ones, 0.0)
    going = here * ops.where(terminated | truncated, 0.0, ones) * _shift(ops, here, 1)
    return lambda x: ops.where(valid, x, 0.0), going


def _same(x: Array) -> Array:
    return x


def _shift(ops: Ops, x: Array, steps: int) -> Array:
    """x[t + steps], 0 behind the end."""
    return ops.concat([x[steps:], ops.zeros_like(x[:steps])], 0)


def _recurrence(ops: Ops, decay: Array, x: Array) -> Array:
    """y[t] = x[t] + decay[t] y[t+1], y[T] = 0; by doubling the reach of each y."""
    reach = 1
    while reach < x.shape[0]:
        x = x + decay * _shift(ops, x, reach)
        decay = decay * _shift(ops, decay, reach)
        reach *= 2
    return x
