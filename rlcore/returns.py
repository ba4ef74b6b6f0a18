"""Return estimators on whole fragments: pure functions of NumPy arrays."""

from __future__ import annotations

import numpy as np

from rlcore.errors import ConfigError, SpecError


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


def check_horizon(*, gamma: float, n: int) -> None:
    """Raise ConfigError unless n >= 1 and 0 <= gamma <= 1."""
    if n < 1:
        raise ConfigError(f"n is {n}, expected 1 or more steps")
    if not 0 <= gamma <= 1:
        raise ConfigError(f"gamma is {gamma}, expected 0 to 1")
