"""The project's own commands; they need Python alone, and keep everything they install in .venv.

python3 dev.py demo [OPTION...]        train DQN on CartPole with PyTorch; options go to `rlcore train`
python3 dev.py test [PYTEST ARG...]    ruff, mypy, import-linter and pytest, on all plugins
python3 dev.py run COMMAND [ARG...]    a command inside the environment, in this folder
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "dev-stamp"  # "PROFILE HASH" after a complete install; "installing" while one is under way
PROFILES = ["demo", "test"]  # each includes the one before it
DEMO = ["rlcore", "train", "dqn", "--env", "CartPole-v1", "--backend", "torch", "--seed", "0"]
CHECKS = ["ruff check .", "ruff format --check .", "mypy", "lint-imports --no-cache", "pytest"]


def main(args: list[str]) -> int:
    command, rest = (args[0], args[1:]) if args else ("", [])
    if command == "demo":
        install("demo")
        return call([*DEMO, *rest])
    if command == "test":
        install("test")
        return check(rest)
    if command == "run" and rest:
        install(None)
        return call(rest)
    print(__doc__.strip())
    return 0 if command in ("-h", "--help") else 2


def check(pytest_args: list[str]) -> int:
    """Run every check, whatever failed before it, and show how long each took."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    rows = []
    for name in CHECKS:
        words = name.split() + (pytest_args if name == "pytest" else [])
        print(f"\n$ {' '.join(words)}", flush=True)
        start = time.perf_counter()
        rows.append((name, call(words), time.perf_counter() - start))
    print(f"\n{'check':<26}{'result':<12}{'seconds':>8}")
    for name, code, seconds in rows:
        print(f"{name:<26}{'ok' if code == 0 else f'failed ({code})':<12}{seconds:>8.1f}")
    return 1 if any(code for _, code, _ in rows) else 0


def call(words: list[str]) -> int:
    """Run a command of the environment, in the project's folder."""
    scripts = str(in_venv("scripts"))
    env = {**os.environ, "VIRTUAL_ENV": str(VENV), "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"}
    program = shutil.which(words[0], path=scripts)  # not the system's pytest or mypy
    if program is None:
        print(f"error: no command '{words[0]}'; `python3 dev.py test` installs the tools", file=sys.stderr)
        return 127
    code = subprocess.call([program, *words[1:]], cwd=ROOT, env=env)
    return code if code >= 0 else 128 - code  # ended by a signal: as a shell counts it


def install(profile: str | None) -> None:
    """Bring the environment up to a profile, or to the one it has; at once if no project file has changed."""
    plugins = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
    files = [*(p / "pyproject.toml" for p in [ROOT, *plugins]), ROOT / "constraints.txt", ROOT / "dev.py"]
    content = "\0".join([sys.version, str(ROOT), *(f.read_text(encoding="utf-8") for f in files)])
    wanted = hashlib.sha256(content.encode()).hexdigest()
    state = STAMP.read_text().split() if STAMP.exists() else []
    present = state[0] if state and state[0] in PROFILES else "demo"
    profile = max(profile or "demo", present, key=PROFILES.index)
    if state == [profile, wanted]:
        return
    print(f"installing what '{profile}' needs into {VENV.name}; again only when a project file changes", flush=True)
    start = time.perf_counter()
    python = in_venv("scripts") / ("python.exe" if os.name == "nt" else "python")
    sound = python.exists() and (in_venv("purelib") / "pip").is_dir() and state != ["installing"]
    if not sound:  # none yet, another Python's, or one of which no one knows how far it got
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir(exist_ok=True)
    STAMP.write_text("installing")
    if not sound:
        step("virtual environment", [sys.executable, "-m", "venv", VENV])
    projects = [ROOT, ROOT / "plugins/rl_torch"] if profile == "demo" else [f"{p}[test]" for p in [ROOT, *plugins]]
    pip = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-compile"]
    step("build tools", [*pip, "hatchling>=1.26", "editables"])
    editable = [word for project in projects for word in ("-e", project)]
    step("rlcore and plugins", [*pip, "--no-build-isolation", "-c", ROOT / "constraints.txt", *editable])
    # On all cores, and also where PYTHONDONTWRITEBYTECODE would make every start compile anew.
    step("bytecode", [python, "-m", "compileall", "-qq", "-j", "0", in_venv("purelib")], may_fail=True)
    STAMP.with_suffix(".new").write_text(f"{profile} {wanted}")
    STAMP.with_suffix(".new").replace(STAMP)
    print(f"  {'in all':<24}{time.perf_counter() - start:>7.1f} s\n", flush=True)


def step(name: str, words: list[str | Path], *, may_fail: bool = False) -> None:
    print(f"  {name:<24}", end="", flush=True)
    start = time.perf_counter()
    code = subprocess.call(words, cwd=ROOT, stderr=subprocess.DEVNULL if may_fail else None)
    if code and not may_fail:
        if code > 0:  # it ended in order, so the next try can build upon what is there
            STAMP.unlink()
        sys.exit(f"\nerror: {name}: exit code {code} from {' '.join(map(str, words))}")
    print(f"{time.perf_counter() - start:>7.1f} s", flush=True)


def in_venv(kind: str) -> Path:
    return Path(sysconfig.get_path(kind, "venv", {"base": str(VENV), "platbase": str(VENV)}))


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("error: rlcore needs Python 3.11 or newer, this is " + sys.version.split()[0])
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        sys.exit("error: this Python lacks venv or ensurepip; on Debian and Ubuntu: apt install python3-venv")
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
