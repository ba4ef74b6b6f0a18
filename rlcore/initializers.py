"""Initial weights, drawn in NumPy so that every backend starts from the same ones.

An initializer is a number (constant), a name below, a ``{"name": ..., option: value}`` mapping, or any
callable ``(rng, shape) -> array``. Kernels are ``[in, out]`` (dense) or HWIO (convolutions), so the
fan-in is the product of all axes but the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rlcore.errors import ConfigError, nearest

Initializer = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    fan_in = int(np.prod(shape[:-1]))
    return fan_in, shape[-1] * int(np.prod(shape[:-2]))


def constant(value: float = 0.0) -> Initializer:
    return lambda rng, shape: np.full(shape, value)


def uniform(low: float = -0.05, high: float = 0.05) -> Initializer:
    return lambda rng, shape: rng.uniform(low, high, shape)


def normal(stddev: float = 0.05) -> Initializer:
    return lambda rng, shape: rng.standard_normal(shape) * stddev


def fan_in_uniform(gain: float = 1.0) -> Initializer:
    """U(-g/sqrt(fan_in), g/sqrt(fan_in)): what ``torch.nn.Linear`` and ``Conv2d`` start from."""
    return lambda rng, shape: rng.uniform(-1, 1, shape) * gain / np.sqrt(_fans(shape)[0])


def glorot_uniform(gain: float = 1.0) -> Initializer:
    """Glorot & Bengio 2010, eq. 16."""
    return lambda rng, shape: rng.uniform(-1, 1, shape) * gain * np.sqrt(6.0 / sum(_fans(shape)))


def he_uniform() -> Initializer:
    """He et al. 2015, for ReLU."""
    return lambda rng, shape: rng.uniform(-1, 1, shape) * np.sqrt(6.0 / _fans(shape)[0])


def he_normal() -> Initializer:
    """He et al. 2015, eq. 10."""
    return lambda rng, shape: rng.standard_normal(shape) * np.sqrt(2.0 / _fans(shape)[0])


def orthogonal(gain: float = 1.0) -> Initializer:
    """Saxe et al. 2013: an orthogonal matrix over (fan_in, out), times ``gain``."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) < 2:
            return np.zeros(shape)
        rows, columns = int(np.prod(shape[:-1])), shape[-1]
        a = rng.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(a)
        q = q * np.sign(np.diagonal(r))
        matrix: np.ndarray = gain * (q if rows >= columns else q.T)
        return matrix.reshape(shape)

    return draw


NAMED: dict[str, Callable[..., Initializer]] = {
    "zeros": lambda: constant(0.0),
    "ones": lambda: constant(1.0),
    "constant": constant,
    "uniform": uniform,
    "normal": normal,
    "fan_in_uniform": fan_in_uniform,
    "glorot_uniform": glorot_uniform,
    "he_uniform": he_uniform,
    "he_normal": he_normal,
    "orthogonal": orthogonal,
}


def get(spec: Any) -> Initializer:
    """The initializer a spec stands for.

    :raises ConfigError: for an unknown name or option.
    """
    if callable(spec):
        return spec  # type: ignore[no-any-return]
    if isinstance(spec, (int, float)):
        return constant(float(spec))
    options = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
    name = options.pop("name", None)
    if name not in NAMED:
        raise ConfigError(f"unknown initializer {name!r}.{nearest(str(name), NAMED)} Known: {', '.join(NAMED)}")
    try:
        return NAMED[name](**options)
    except TypeError as e:
        raise ConfigError(f"initializer {name!r}: {e}") from e
