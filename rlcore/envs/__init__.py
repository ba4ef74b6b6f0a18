"""Environments: the adapter for Gymnasium's vector environments."""

from rlcore.envs.vector import EpisodeStats, KeepFinalObservation, Steps, VectorAdapter, make_vector

__all__ = ["EpisodeStats", "KeepFinalObservation", "Steps", "VectorAdapter", "make_vector"]
