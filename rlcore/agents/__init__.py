"""Agents: one file an algorithm. An agent is a root component with a config."""
