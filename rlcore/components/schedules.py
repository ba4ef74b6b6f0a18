"""Schedules: a value as a function of the run's progress, from 0 at its start to 1 at its end.

Short forms: a number (constant); ``[1e-3, 0]`` or ``[1e-3, 0, 0.2]`` (linear, over the first 20 % of the
run); ``{"name": "exponential", ...}``. The same arithmetic runs inside a graph and on the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlcore.component import Array, Component, api
from rlcore.errors import ConfigError, nearest


class Schedule(Component):
    """progress: float32 []  ->  float32 []"""

    @api
    def __call__(self, progress: Array) -> Array:
        raise NotImplementedError


def _fraction(name: str, value: float) -> float:
    if not 0 < value <= 1:
        raise ConfigError(f"{name} {value} is a fraction of the run: above 0, at most 1")
    return float(value)


class Constant(Schedule):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = float(value)

    @api
    def __call__(self, progress: Array) -> Array:
        return self.ops.zeros_like(progress) + self.value


class Polynomial(Schedule):
    """end + (start - end) (1 - progress / until)^power; ``end`` after ``until``."""

    def __init__(self, start: float, end: float, *, power: float = 1.0, until: float = 1.0) -> None:
        super().__init__()
        self.start, self.end, self.power, self.until = float(start), float(end), float(power), _fraction("until", until)

    @api
    def __call__(self, progress: Array) -> Array:
        left = 1.0 - self.ops.clip(progress * (1.0 / self.until), 0.0, 1.0)
        return (left if self.power == 1.0 else left**self.power) * (self.start - self.end) + self.end


class Linear(Polynomial):
    def __init__(self, start: float, end: float, *, until: float = 1.0) -> None:
        super().__init__(start, end, until=until)


class Exponential(Schedule):
    """start (end / start)^(progress / until); ``end`` after ``until``.

    :raises ConfigError: unless both ends are above 0.
    """

    def __init__(self, start: float, end: float, *, until: float = 1.0) -> None:
        super().__init__()
        if start <= 0 or end <= 0:
            raise ConfigError(f"an exponential schedule needs ends above 0, got {start} and {end}")
        import math

        self.start, self.log_ratio, self.until = float(start), math.log(end / start), _fraction("until", until)

    @api
    def __call__(self, progress: Array) -> Array:
        return self.ops.exp(self.ops.clip(progress * (1.0 / self.until), 0.0, 1.0) * self.log_ratio) * self.start


class Piecewise(Schedule):
    """``values[i]`` from ``boundaries[i-1]`` on.

    :raises ConfigError: unless there is one value more than boundaries, and these grow inside 0..1.
    """

    def __init__(self, boundaries: Sequence[float], values: Sequence[float]) -> None:
        super().__init__()
        self.boundaries, self.values = [float(b) for b in boundaries], [float(v) for v in values]
        if len(self.values) != len(self.boundaries) + 1:
            raise ConfigError(f"a piecewise schedule of {len(self.boundaries)} boundaries needs one value more")
        if sorted(set(self.boundaries)) != self.boundaries or any(not 0 < b < 1 for b in self.boundaries):
            raise ConfigError(f"boundaries {self.boundaries} are fractions of the run: growing, between 0 and 1")

    @api
    def __call__(self, progress: Array) -> Array:
        value = self.ops.zeros_like(progress) + self.values[0]
        for boundary, after in zip(self.boundaries, self.values[1:], strict=True):
            value = self.ops.where(progress < boundary, value, after)
        return value


NAMED: dict[str, type[Schedule]] = {
    "constant": Constant,
    "linear": Linear,
    "polynomial": Polynomial,
    "exponential": Exponential,
    "piecewise": Piecewise,
}


def as_schedule(spec: Any) -> Schedule:
    """The schedule that a number, a list or a mapping stands for.

    :raises ConfigError: says what is wrong with it.
    """
    if isinstance(spec, Schedule):
        return spec
    if isinstance(spec, (int, float)) and not isinstance(spec, bool):
        return Constant(spec)
    if isinstance(spec, (list, tuple)):
        if len(spec) not in (2, 3) or not all(isinstance(v, (int, float)) for v in spec):
            raise ConfigError(f"schedule {list(spec)}: a list is [start, end] or [start, end, fraction of the run]")
        return Linear(spec[0], spec[1], until=spec[2] if len(spec) == 3 else 1.0)
    if isinstance(spec, Mapping):
        options = dict(spec)
        name = options.pop("name", None)
        if name not in NAMED:
            raise ConfigError(f"unknown schedule {name!r}.{nearest(str(name), NAMED)} Known: {', '.join(NAMED)}")
        try:
            return NAMED[name](**options)
        except TypeError as e:
            raise ConfigError(f"schedule '{name}': {e}") from e
    raise ConfigError(f"schedule {spec!r} is neither a number, a list nor a mapping")
