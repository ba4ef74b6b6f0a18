"""What hooks are given: plain, immutable data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SessionInfo:
    """One training run.

    :ivar id: the same in the driver and in every worker.
    :ivar config: the complete settings of the run.
    :ivar run_dir: where its files lie.
    :ivar plugins: each plugin in use, as ``kind name distribution version``.
    """

    id: str
    config: Mapping[str, Any]
    run_dir: Path
    plugins: Sequence[str]


@dataclass(frozen=True)
class WorkerInfo:
    """One role in its process.

    :ivar role: ``Sampler``, ``Learner``, ... ; ``index`` counts from 0 within a role.
    :ivar session: id of the session that it belongs to.
    """

    role: str
    index: int
    session: str


@dataclass(frozen=True)
class BuildStats:
    """What was built and how long it took.

    :ivar components: of the tree. ``parameters``: trained numbers. ``calls``: of one component by another.
    :ivar assembly_seconds: for the component graph. ``build_seconds``: for the backend's part, without what a
        static graph captures at its first call.
    """

    components: int
    variables: int
    parameters: int
    calls: int
    assembly_seconds: float
    build_seconds: float


@dataclass(frozen=True)
class RolloutStats:
    """:ivar env_steps: of this rollout; ``total_env_steps`` since the start of the run.
    :ivar episodes: (undiscounted return, length in env steps) of each that ended in it."""

    env_steps: int
    total_env_steps: int
    episodes: Sequence[tuple[float, int]]


@dataclass(frozen=True)
class UpdateStats:
    """:ivar updates: gradient steps since the start of the run, at ``env_steps``.
    :ivar metrics: mean of each scalar over the gradient steps since the last call."""

    updates: int
    env_steps: int
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Evaluation:
    """Undiscounted returns and lengths (env steps) of whole episodes."""

    returns: list[float]
    lengths: list[int]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.returns)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.returns)

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f} over {len(self.returns)} episodes"


@dataclass(frozen=True)
class CheckResult:
    """:ivar ok: whether it is as it should be. ``detail``: what was found, and how to mend it if it is not."""

    name: str
    ok: bool
    detail: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
