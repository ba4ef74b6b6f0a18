"""Independent random streams, one a copy of a world, drawn from for all copies at once.

NumPy's generators draw for one stream at a time. SplitMix64 (Steele, Lea and Flood 2014) is a counter and a hash of
it, so that the streams of N copies are one array, and a copy draws the same numbers whether it is stepped alone or
among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

UIntArray = np.ndarray[Any, np.dtype[np.uint64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_MASK, _GAMMA = (1 << 64) - 1, 0x9E3779B97F4A7C15
_S27, _S30, _S31, _S11 = (np.uint64(n) for n in (27, 30, 31, 11))
_C1, _C2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(z: UIntArray) -> UIntArray:
    """The hash of SplitMix64.   uint64 [...]  ->  uint64 [...], a bijection"""
    z = (z ^ (z >> _S30)) * _C1
    z = (z ^ (z >> _S27)) * _C2
    return z ^ (z >> _S31)


@cache
def _offsets(count: int) -> tuple[UIntArray, UIntArray]:
    """The steps of the counter to each of ``count`` draws, uint64 [1, count], and over all of them, uint64 [1]."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA)
    return steps[None], np.array([count * _GAMMA & _MASK], np.uint64)


def words(position: UIntArray, count: int) -> UIntArray:
    """The first outputs of SplitMix64 seeded with each position.   uint64 [n]  ->  uint64 [n, count]"""
    return mix(position[:, None] + _offsets(count)[0])


def to_uniform(bits: UIntArray) -> FloatArray:
    """uint64 [...]  ->  float64 [...] in [0, 1), of 53 bits each"""
    uniform: FloatArray = np.multiply(bits >> _S11, 2.0**-53, dtype=np.float64)
    return uniform


def to_normal(bits: UIntArray) -> FloatArray:
    """Standard normal numbers (Box and Muller 1958).   uint64 [n, 2 k]  ->  float64 [n, k]"""
    u = to_uniform(bits)
    half = u.shape[1] // 2
    radius = np.sqrt(-2.0 * np.log(1.0 - u[:, :half]))  # of (0, 1]
    normal: FloatArray = radius * np.cos(2.0 * np.pi * u[:, half:])
    return normal


class Streams:
    """``n`` streams of random numbers.

    :ivar position: uint64 [n], the counters; all there is to a stream.
    """

    def __init__(self, position: UIntArray) -> None:
        self.position = position

    @property
    def n(self) -> int:
        return len(self.position)

    def seed(self, seeds: Sequence[int | None]) -> None:
        """Start each stream anew from its seed, of any size; None leaves a stream where it is."""
        for i, seed in enumerate(seeds):
            if seed is not None:
                self.position[i] = _folded(seed)
        rows = [i for i, seed in enumerate(seeds) if seed is not None]
        # Hashed, so that the streams of neighbouring seeds lie far apart.
        self.position[rows] = words(self.position[rows], 1)[:, 0]

    def take(self, rows: IntArray) -> Streams:
        """A copy of the streams in ``rows``, int64 [k]; :meth:`put` brings them back."""
        return Streams(self.position[rows])

    def put(self, rows: IntArray, part: Streams) -> None:
        self.position[rows] = part.position

    def bits(self, count: int) -> UIntArray:
        """uint64 [n, count]"""
        drawn = words(self.position, count)
        self.position = self.position + _offsets(count)[1]
        return drawn

    def uniform(self, count: int) -> FloatArray:
        """float64 [n, count] in [0, 1)"""
        return to_uniform(self.bits(count))

    def normal(self, count: int) -> FloatArray:
        """float64 [n, count], of mean 0 and standard deviation 1"""
        return to_normal(self.bits(2 * count))

    def integers(self, high: int) -> IntArray:
        """int64 [n] in [0, high), for a ``high`` far below 2^53"""
        return (self.uniform(1)[:, 0] * high).astype(np.int64)


def _folded(seed: int) -> int:
    """The seed in 64 bits: itself, if it has no more."""
    folded = 0
    while seed:
        folded, seed = folded ^ (seed & _MASK), seed >> 64
    return folded
