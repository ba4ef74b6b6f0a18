"""Samples of any space for many copies at once, as functions of a seed each.

What Gymnasium's ``Space.sample`` draws from: uniform where a Box is bounded, normal where it is not, and exponential
from the one bound where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from rlcore.envs.worlds.streams import FloatArray, IntArray, UIntArray, mix, to_normal, to_uniform, words
from rlcore.errors import ConfigError
from rlcore.specs import Tree

Sampler = Callable[[UIntArray], Tree]
"""uint64 [n]  ->  tree of [n, ...] in the space, batched. New arrays."""


def sampler(space: Space[Any]) -> Sampler:
    """:raises ConfigError: for any other space than Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple."""
    if isinstance(space, spaces.Dict):
        parts = {key: sampler(sub) for key, sub in space.spaces.items()}
        return lambda seeds: dict(zip(parts, _each(list(parts.values()), seeds), strict=True))
    if isinstance(space, spaces.Tuple):
        subs = [sampler(sub) for sub in space.spaces]
        return lambda seeds: tuple(_each(subs, seeds))
    if isinstance(space, spaces.Discrete):
        return _integers((), np.dtype(space.dtype), np.array(space.start), np.array(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return _integers(space.shape, np.dtype(space.dtype), space.start, space.nvec)
    if isinstance(space, spaces.MultiBinary):
        return _integers(space.shape, np.dtype(np.int8), np.zeros(space.shape), np.full(space.shape, 2))
    if isinstance(space, spaces.Box):
        return _box(space)
    kinds = "Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple"
    raise ConfigError(f"{type(space).__name__} spaces can't be sampled here: {space}; expected {kinds}")


def _each(samplers: list[Sampler], seeds: UIntArray) -> list[Tree]:
    """Each with seeds of its own."""
    own = mix(words(seeds, len(samplers))) if samplers else None
    return [sample(own[:, i]) for i, sample in enumerate(samplers)] if own is not None else []


def _integers(shape: tuple[int, ...], dtype: np.dtype[Any], low: np.ndarray, count: np.ndarray) -> Sampler:
    """``count`` values from ``low`` on; exact for counts below 2^53."""
    size = int(np.prod(shape))
    first, many = low.ravel().astype(np.float64), count.ravel().astype(np.float64)
    last = first + many - 1

    def sample(seeds: UIntArray) -> IntArray:
        values = np.floor(to_uniform(words(seeds, size)) * many) + first
        return np.minimum(values, last).astype(dtype).reshape(-1, *shape)

    return sample


def _box(space: spaces.Box) -> Sampler:
    shape, dtype = space.shape, np.dtype(space.dtype)
    size = int(np.prod(shape))
    if dtype == np.uint8 and not space.low.any() and np.all(space.high == 255):
        # An image: eight of its values from one word.
        return lambda seeds: np.ascontiguousarray(words(seeds, -(-size // 8)).view(np.uint8)[:, :size]).reshape(
            -1, *shape
        )
    if dtype.kind in "iub":
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        return _integers(shape, dtype, low, high - low + 1)
    low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
    below, above = np.isfinite(low), np.isfinite(high)
    if np.all(below & above):
        return lambda seeds: _between(to_uniform(words(seeds, size)), low, high).astype(dtype).reshape(-1, *shape)

    def sample(seeds: UIntArray) -> Tree:
        bits = words(seeds, 2 * size)
        uniform = to_uniform(bits[:, :size])
        exponential = -np.log(1 - uniform)
        values = np.where(below, low + exponential, np.where(above, high - exponential, to_normal(bits)))
        values = np.where(below & above, _between(uniform, low, high), values)
        return values.astype(dtype).reshape(-1, *shape)

    return sample


def _between(uniform: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
    between: FloatArray = np.minimum(np.maximum(low * (1 - uniform) + high * uniform, low), high)
    return between
