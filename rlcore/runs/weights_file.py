"""Weights on disk: safetensors, so opening a stranger's file runs nothing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from rlcore.backend import Weights, WeightsError
from rlcore.layout import Entry


def save_weights(path: str | Path, weights: Weights) -> None:
    """Write to a temporary name, sync, rename: a crash leaves the old file or the new one."""
    from safetensors.numpy import save

    path = Path(path)
    data = save(
        {e.path: np.ascontiguousarray(weights[e.path]) for e in weights.manifest}, {"version": str(weights.version)}
    )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load_weights(path: str | Path) -> Weights:
    """Weights that any backend takes.

    :raises WeightsError: if the file is no safetensors file of float32 tensors.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "numpy") as file:
            names = sorted(file.keys())
            arrays = {name: file.get_tensor(name) for name in names}
            version = int((file.metadata() or {}).get("version", 0))
    except (SafetensorError, OSError, ValueError) as e:
        raise WeightsError(f"{path} can't be read as weights: {e}") from e
    entries, offset = [], 0
    for name in names:
        if arrays[name].dtype != np.float32:
            raise WeightsError(f"{path}: '{name}' is {arrays[name].dtype}, not float32")
        entries.append(Entry(name, tuple(arrays[name].shape), offset))
        offset += arrays[name].size
    buffer = np.concatenate([arrays[n].ravel() for n in names]) if names else np.zeros(0, np.float32)
    return Weights(buffer, tuple(entries), version)
