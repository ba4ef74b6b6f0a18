"""The published suite, through the public interface alone."""

from rlcore.testing import GraphBuilderConformance


class TestTorch(GraphBuilderConformance):
    plugin = "torch"
