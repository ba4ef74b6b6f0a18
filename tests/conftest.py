"""Backends and modes that the tests run on; all of them, always. Distributions that exist for one test."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest

BUILDS = [("numpy", "eager"), ("torch", "eager"), ("torch", "static"), ("tf", "eager"), ("tf", "static")]


@pytest.fixture(params=BUILDS, ids=lambda b: "-".join(b))
def build(request: pytest.FixtureRequest) -> dict[str, str]:
    """``backend`` and ``mode`` as keyword arguments."""
    backend, mode = request.param
    return {"backend": backend, "mode": mode}


class Site:
    """A folder of distributions, as pip leaves them, found by this process and by those that it starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def add(self, dist, group, entry_points, *, version="1.0", requires=("rlcore>=0.1",), **files):
        """Install a distribution.

        :param group: without the ``rlcore.`` in front. ``files``: module name -> source.
        """
        info = self.folder / f"{dist.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = [
            "Metadata-Version: 2.1",
            f"Name: {dist}",
            f"Version: {version}",
            *(f"Requires-Dist: {r}" for r in requires),
        ]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        names = "\n".join(f"{k} = {v}" for k, v in entry_points.items())
        (info / "entry_points.txt").write_text(f"[rlcore.{group}]\n{names}\n")
        for module, source in files.items():
            (self.folder / f"{module}.py").write_text(textwrap.dedent(source))
            self.modules.append(module)
        importlib.invalidate_caches()
        return info


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Distributions of one test: :meth:`Site.add`."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])))
    made = Site(folder)
    yield made
    for module in made.modules:
        sys.modules.pop(module, None)
