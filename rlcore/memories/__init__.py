"""Memories: host-side stores of transitions, in plain NumPy."""

from rlcore.memories.n_step import NStepBuilder
from rlcore.memories.replay import UniformReplay

__all__ = ["NStepBuilder", "UniformReplay"]
