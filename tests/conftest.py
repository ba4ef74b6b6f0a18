"""Backends and modes that the tests run on; all of them, always."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest

BUILDS = [("numpy", "eager"), ("torch", "eager"), ("torch", "static"), ("tf", "eager"), ("tf", "static")]


@pytest.fixture(params=BUILDS, ids=lambda b: "-".join(b))
def build(request: pytest.FixtureRequest) -> dict[str, str]:
    """``backend`` and ``mode`` as keyword arguments."""
    backend, mode = request.param
    return {"backend": backend, "mode": mode}
