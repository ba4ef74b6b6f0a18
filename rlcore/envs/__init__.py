"""Environments: the adapter for Gymnasium's vector environments, and small worlds registered with Gymnasium."""

from rlcore.envs.vector import EpisodeStats, KeepFinalObservation, Steps, VectorAdapter, make_vector
from rlcore.envs.worlds import register_worlds

__all__ = ["EpisodeStats", "KeepFinalObservation", "Steps", "VectorAdapter", "make_vector", "register_worlds"]

register_worlds()
