"""No framework's or plugin's name where algorithms are written (DESIGN, invariant 1)."""

import re
from pathlib import Path

import pytest

import rlcore

ROOT = Path(rlcore.__file__).parent
PLACES = ["components", "agents", "workflows", "memories", "returns.py"]
NAMES = re.compile(r"\b(torch|pytorch|tensorflow|tf|keras|jax|autograd|ray|horovod)\b", re.IGNORECASE)


def files():
    for place in PLACES:
        path = ROOT / place
        assert path.exists(), place
        yield from path.rglob("*.py") if path.is_dir() else [path]


@pytest.mark.parametrize("path", list(files()), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_framework_in_the_code(path):
    """Docstrings may say whose default or form a value is; code may not name a framework at all."""
    import ast

    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        names = []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
        elif isinstance(node, ast.Name):
            names = [node.id]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 30:
            names = [node.value]
        for name in names:
            assert not NAMES.search(name.replace("_", " ").replace(".", " ")), f"{path.name}:{node.lineno}: {name}"
