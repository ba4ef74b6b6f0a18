"""All the checks that there are: importing this adds them."""

from rlcore.testing import check_differential, check_executors, check_graph_builders, check_packages, check_packs

__all__ = ["check_differential", "check_executors", "check_graph_builders", "check_packages", "check_packs"]
