"""The run directory: config.yaml, manifest.json, metrics.csv, weights.safetensors."""

from __future__ import annotations

import csv
import json
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from rlcore.errors import ConfigError
from rlcore.plugins.session import Session
from rlcore.runs.config import RunConfig

PACKAGES = (
    "rlcore",
    "rl-torch",
    "rl-tf",
    "numpy",
    "gymnasium",
    "torch",
    "tensorflow",
    "tensorflow-cpu",
    "optree",
    "autograd",
)
PLUGIN_FIELDS = ("kind", "name", "distribution", "version", "entry_point")


class RunDir:
    """Made when the run starts, after every setting was checked."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path, self.settings = path, settings

    @staticmethod
    def check(path: str | Path) -> None:
        """Raise ConfigError unless a run may be written there: what was trained before is never overwritten."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ConfigError(f"run directory {path} is not empty; name a new folder")

    @classmethod
    def create(cls, config: RunConfig, session: Session, path: str | Path | None = None) -> RunDir:
        """:param path: as :meth:`check` allows; ``runs/AGENT-ENV-TIME-sSEED`` if None."""
        if path is None:
            stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
            name = f"{config.agent}-{_name(config.env).replace('/', '_')}-{stamp}-s{config.seed}"
            path, number = Path("runs") / name, 1
            while path.exists():
                number += 1
                path = Path("runs") / f"{name}-{number}"
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        settings = _plain(config.model_dump())
        for key in ("env", "backend", "actor_backend", "executor"):
            settings[key] = _name(settings[key])
        if settings["hooks"] is not None:
            # Objects can't be written down, and a run is the same without its observers.
            settings["hooks"] = [hook for hook in settings["hooks"] if isinstance(hook, str)]
        run = cls(path, settings)
        (path / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        run.write_json("manifest.json", {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": sys.version.split()[0],
            "machine": platform.machine(),
            "system": platform.system(),
            "packages": {p: v for p in PACKAGES if (v := _version(p))},
            "plugins": [dict(zip(PLUGIN_FIELDS, plugin, strict=True)) for plugin in session.plugin_set],
            "plugin_set": session.fingerprint,
            "seed": config.seed,
        })  # fmt: skip
        return run

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        (self.path / name).write_text(json.dumps(value, indent=2) + "\n")


class MetricsFile:
    """Rows of numbers; the columns are fixed by name, so that no row shifts."""

    COLUMNS = (
        "env_steps",
        "updates",
        "seconds",
        "episodes",
        "return_mean",
        "length_mean",
        "loss",
        "q_mean",
        "grad_norm",
    )

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w", newline="")
        self._writer = csv.DictWriter(self._file, self.COLUMNS, extrasaction="ignore")
        self._writer.writeheader()

    def write(self, row: Mapping[str, Any]) -> None:
        self._writer.writerow(row)
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _name(value: Any) -> Any:
    """What stands for an object in text: its name, or that of the function or class. Plain settings stay."""
    if value is None or isinstance(value, (str, dict)):
        return value
    return str(getattr(value, "name", None) or getattr(value, "__name__", type(value).__name__))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value
