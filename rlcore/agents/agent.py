"""What every agent has: a config, specs of the spaces, and the inputs of its apis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pydantic

from rlcore.component import Component
from rlcore.components.schedules import as_schedule
from rlcore.specs import SpecTree


class AgentConfig(pydantic.BaseModel):
    """Settings of an agent: immutable, unknown keys are refused."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def check_schedule(value: Any) -> Any:
    as_schedule(value)  # raises ConfigError, a ValueError, which pydantic reports with the key
    return value


class Agent(Component):
    """A root component. Workflows and users call ``act``, ``act_greedy`` and what its training needs.

    :cvar acting: apis that a sampler needs; the rest, and the variables behind it, stay with the learner.
    """

    config_class: ClassVar[type[AgentConfig]]
    workflow: ClassVar[str]
    acting: ClassVar[tuple[str, ...]] = ("act", "act_greedy")

    def __init__(self, observation: SpecTree, action: SpecTree, config: Any) -> None:
        super().__init__()

    def api_inputs(self) -> Mapping[str, Mapping[str, SpecTree]]:
        """Input specs of every root api, in the order in which to assemble."""
        raise NotImplementedError
