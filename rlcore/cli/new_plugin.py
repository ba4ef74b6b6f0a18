"""``rlcore new-plugin``: a plugin project to start from, which already passes its checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlcore.errors import ConfigError, nearest
from rlcore.plugins.discovery import KINDS
from rlcore.plugins.info import PLUGIN_API_VERSION
from rlcore.version import __version__

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Template:
    """:ivar suite: class in :mod:`rlcore.testing`. ``usage``: last part of the README."""

    suite: str
    summary: str
    usage: str


TEMPLATES_OF = {
    "graph-builder": Template(
        "GraphBuilderConformance",
        "The @name@ graph backend of rlcore.",
        "Use it by name: `rlcore train dqn --env CartPole-v1 --backend @name@`.\n\n"
        "It starts as rlcore's NumPy backend under another name; `@package@/builder.py` says how to make it yours.",
    ),
    "executor": Template(
        "ExecutorConformance",
        "The @name@ executor of rlcore: each role in a process of its own.",
        "Use it by name: `rlcore train dqn --env CartPole-v1 --backend numpy --executor @name@`.\n\n"
        'A script of your own that trains with it needs `if __name__ == "__main__":` around what it does, as all\n'
        "programs that start processes.",
    ),
    "components": Template(
        "ComponentsConformance",
        "The @name@ component pack of rlcore: a network, an exploration and an environment.",
        "Use them by name:\n\n"
        "```\nrlcore train dqn --env @name@/Corridor-v0 --backend numpy --set network=@name@-residual \\\n"
        "    --set exploration.name=@name@-boltzmann --set exploration.temperature=0.5\n```",
    ),
    "hooks": Template(
        "HooksConformance",
        "The @name@ observer of rlcore: a JSON line an event.",
        "It sees every run while it is installed, and writes `@name@.jsonl` into the run's directory.\n"
        "`RLCORE_DISABLE_PLUGINS=@name@` switches it off; `hooks=[...]` or `--hooks` choose observers by name.",
    ),
}


def new_plugin_command(name: str, kind: str, out: Path) -> None:
    folder = write_plugin(name, kind, out)
    print(f"wrote {folder}")
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        print(f"  {path.relative_to(folder)}")
    print(f'next: pip install -e "{folder}[test]" && rlcore check-plugin {kind}/{name}')


def write_plugin(name: str, kind: str, out: Path) -> Path:
    """Write the project ``rl-NAME`` into a folder of that name.

    :param kind: ``graph-builder``, ``executor``, ``components`` or ``hooks``.
    :raises ConfigError: for another kind, a name that can't be one, or a folder that is there already.
    """
    if kind not in KINDS:
        raise ConfigError(f"--kind {kind}: no such kind.{nearest(kind, KINDS)} It is {', '.join(KINDS)}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(f"'{name}' can't be a plugin's name: lower-case letters and digits, '-' between words")
    template, package = TEMPLATES_OF[kind], f"rl_{name.replace('-', '_')}"
    words = {
        "usage": template.usage,
        "summary": template.summary,
        "name": name,
        "dist": f"rl-{name}",
        "package": package,
        "Class": "".join(part.capitalize() for part in name.split("-")),
        "kind": kind,
        "words": KINDS[kind].words,
        "group": KINDS[kind].group,
        "Suite": template.suite,
        "rlcore": __version__,
        "api": PLUGIN_API_VERSION,
    }
    folder = out / f"rl-{name}"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there already; choose another name, or --out another folder")
    for source in [TEMPLATES / "common", TEMPLATES / kind]:
        for path in sorted(source.rglob("*.in")):
            relative = _filled(str(path.relative_to(source)).removesuffix(".in"), words)
            relative = {"init.py": f"{package}/__init__.py"}.get(relative, relative)
            relative = re.sub(r"^package/", f"{package}/", relative)
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(path.read_text(encoding="utf-8"), words), encoding="utf-8")
    (folder / package / "py.typed").touch()
    return folder


def _filled(text: str, words: Mapping[str, str]) -> str:
    for _ in range(2):  # the usage and the summary have words of their own
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
    return text
