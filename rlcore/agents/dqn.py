"""DQN: deep Q-learning (Mnih et al. 2015), with double, dueling and n-step options.

Target (eq. 3 of the paper, n-step form):  y = R_n + discount * Q_target(s_n, a*),
where a* maximises Q_target, or Q_online with ``double`` (van Hasselt et al. 2016), and ``discount`` is
gamma^k for k rewards summed, or 0 if the episode terminated within them. A truncated episode goes on
counting: its last observation is bootstrapped from.

Deviations: Adam instead of RMSProp, and the Huber loss as a loss instead of clipping the error (the same
gradient).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt

from rlcore.agents.agent import Agent, AgentConfig, check_schedule
from rlcore.component import Array, Parameters, api, frozen_copy
from rlcore.component_specs import ComponentSpec, SpecOf, check_spec
from rlcore.components import losses
from rlcore.components.networks import network_for
from rlcore.errors import ConfigError
from rlcore.specs import SpecTree, TensorSpec, describe, is_spec, with_axes

ScheduleSpec = Annotated[Any, AfterValidator(check_schedule)]


class DQNConfig(AgentConfig):
    """Settings of DQN. Defaults: Stable-Baselines3 2.9, unless a field says otherwise."""

    learning_rate: ScheduleSpec = Field(1e-4, description="schedule over the run's progress; usual 1e-5 to 3e-3")
    optimizer: Annotated[Any, SpecOf("optimizer")] = Field(
        "adam", validate_default=True, description="name, or a mapping of a name and options"
    )
    max_grad_norm: float | None = Field(10.0, gt=0, description="global L2 norm that gradients are clipped to")
    gamma: float = Field(0.99, ge=0, le=1, description="discount of one env step")
    reward_clip: float | None = Field(
        None, gt=0, description="rewards are learned from between plus and minus this; statistics see them raw"
    )
    n_step: PositiveInt = Field(1, description="rewards summed before the bootstrap; usual 1 to 5")
    double: bool = Field(True, description="double Q-learning (ours; SB3 has none)")
    dueling: bool = Field(False, description="dueling head")
    loss: Literal["huber", "squared"] = Field("huber", description="of the temporal-difference error")
    huber_delta: float = Field(1.0, gt=0, description="error beyond which Huber is linear")
    network: Annotated[Any, SpecOf("network", optional=True)] = Field(
        None, description="of the observations, in place of the usual one with `hidden` and `activation`"
    )
    policy: Annotated[Any, SpecOf("policy", optional=True)] = Field(
        None, description="action values from a network, in place of the usual one with `dueling`"
    )
    hidden: tuple[PositiveInt, ...] = Field(
        (64, 64), description="units of the layers, for observations that are no image"
    )
    activation: str = Field("relu", description="of the hidden layers")
    exploration: Annotated[Any, SpecOf("exploration")] = Field(
        "epsilon_greedy", validate_default=True, description="from action values to the actions of training"
    )
    epsilon: ScheduleSpec = Field((1.0, 0.05, 0.1), description="probability of a random action, a schedule")
    replay: Annotated[Any, SpecOf("replay")] = Field("uniform", validate_default=True, description="the memory")
    replay_capacity: PositiveInt = Field(1_000_000, description="transitions")
    learning_starts_env_steps: int = Field(100, ge=0, description="env steps before the first update")
    batch_size: PositiveInt = Field(32, description="transitions an update")
    train_every_env_steps: PositiveInt = Field(4, description="env steps (over all envs) between trainings")
    updates_per_training: PositiveInt = Field(1, description="gradient steps each time")
    target_update: Literal["hard", "soft"] = Field("hard", description="copy at intervals, or Polyak each update")
    target_sync_env_steps: PositiveInt = Field(10_000, description="env steps between hard copies")
    target_tau: float = Field(0.005, gt=0, le=1, description="share of the online weights in each soft update")


USUAL_POLICY = check_spec("policy", "q_network")


class DQN(Agent):
    """Root component of DQN.

    :param observation: specs of one observation, without a batch axis.
    :param action: spec of one action: Discrete.
    :raises ConfigError: for any other action space.
    """

    config_class = DQNConfig
    workflow = "off_policy"

    def __init__(self, observation: SpecTree, action: SpecTree, config: DQNConfig) -> None:
        super().__init__(observation, action, config)
        if not is_spec(action) or action.kind != "discrete":
            raise ConfigError(f"DQN needs a Discrete action space, this environment's is {describe(action)}")
        self.observation, self.action, self.config = observation, action, config
        network = network_for(observation, config.network, hidden=config.hidden, activation=config.activation)
        policy: ComponentSpec = config.policy or USUAL_POLICY
        self.q_network = policy.build(network=network, num_actions=action.num_values, dueling=config.dueling)
        self.target_network = frozen_copy(self.q_network)
        self.online, self.target = Parameters(self.q_network), Parameters(self.target_network)
        self.exploration = config.exploration.build(epsilon=config.epsilon)
        self.optimizer = config.optimizer.build(learning_rate=config.learning_rate, max_grad_norm=config.max_grad_norm)

    def api_inputs(self) -> Mapping[str, Mapping[str, SpecTree]]:
        observations, scalar = with_axes(self.observation, "B"), TensorSpec(())
        vector = TensorSpec(("B",))
        batch = {
            "observation": observations,
            "action": self.action.with_axes("B"),
            "return": vector,
            "discount": TensorSpec(("B",), "float32", 0.0, 1.0),
            "next_observation": observations,
        }
        return {
            "act": {"observation": observations, "progress": TensorSpec((), "float32", 0.0, 1.0)},
            "act_greedy": {"observation": observations},
            "q_values": {"observation": observations},
            "update": {"batch": batch, "progress": scalar},
            "sync": {},
        }

    @api
    def act(self, observation: Array, progress: Array) -> Array:
        """Explore.   observation: tree of [B, ...], progress: float32 []  ->  actions int64 [B]"""
        return self.exploration(self.q_network(observation), progress) + int(self.action.low)

    @api
    def act_greedy(self, observation: Array) -> Array:
        """The best actions.   observation: tree of [B, ...]  ->  int64 [B]"""
        return self.ops.argmax(self.q_network(observation), -1) + int(self.action.low)

    @api
    def q_values(self, observation: Array) -> Array:
        """observation: tree of [B, ...]  ->  float32 [B, A]"""
        return self.q_network(observation)

    @api
    def update(self, batch: Mapping[str, Array], progress: Array) -> Mapping[str, Array]:
        """One gradient step on a batch of n-step transitions.

        :param batch: ``observation``, ``action`` int64 [B], ``return`` float32 [B] (discounted sum of n
            rewards), ``discount`` float32 [B] (of the bootstrap; 0 where terminated), ``next_observation``.
        :return: scalars ``loss``, ``q_mean``, ``grad_norm``, and ``td_error`` float32 [B].
        """
        ops = self.ops
        next_target = self.target_network(batch["next_observation"])
        if self.config.double:
            best = ops.argmax(self.q_network(batch["next_observation"]), -1)
            next_value = ops.take_along_axis(next_target, ops.expand_dims(best, -1))[:, 0]
        else:
            next_value = ops.max(next_target, -1)
        target = ops.stop_gradient(batch["return"] + batch["discount"] * next_value)
        taken = ops.expand_dims(ops.astype(batch["action"], "int64") - int(self.action.low), -1)

        def loss_fn() -> tuple[Array, Any]:
            value = ops.take_along_axis(self.q_network(batch["observation"]), taken)[:, 0]
            error = value - target
            if self.config.loss == "huber":
                loss = losses.huber(ops, error, self.config.huber_delta)
            else:
                loss = losses.squared(ops, error)
            return ops.mean(loss), {"td_error": error, "q_mean": ops.mean(value)}

        loss, aux, norm = self.optimizer.minimize(loss_fn, self.online, progress)
        if self.config.target_update == "soft":
            ops.assign(
                self.target.flat, self.target.flat + self.config.target_tau * (self.online.flat - self.target.flat)
            )
        return {"loss": loss, "grad_norm": norm, **aux}

    @api
    def sync(self) -> None:
        """Copy the online weights into the target network."""
        self.ops.assign(self.target.flat, self.online.flat)
