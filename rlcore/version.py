"""The version, apart from the public names: what imports it imports nothing else."""

__version__ = "0.1.0"
