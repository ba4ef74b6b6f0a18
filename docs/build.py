"""Fill the parts of the pages that come from the code; ``python docs/build.py`` writes them, a test compares.

``<!-- file: F -->`` puts a template of ``rlcore new-plugin`` into the code block below it, as for the name ``demo``.
"""

from __future__ import annotations

import inspect
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from rlcore.cli.new_plugin import TEMPLATES_OF, write_plugin
from rlcore.plugins import hookspecs
from rlcore.registry import COMPONENT_KINDS

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "plugins"
SECTIONS = {
    "AR": "Vector environments, automatic resets, final observations",
    "BT": "Terminated and truncated, advantages, n-step, V-trace",
    "RB": "Replay and prioritisation",
    "CK": "Checkpoints, resuming, versions",
    "RN": "Recurrent policies",
    "DT": "Determinism and seeds",
    "FT": "Failures, errors, leaks",
    "AL": "Algorithms",
    "PX": "Interface, plugins, installation, export",
}
NAME = "demo"


def pages() -> dict[Path, str]:
    """Every page as it should be."""
    out = {path: filled(path.read_text(encoding="utf-8")) for path in sorted(PAGES.glob("*.md"))}
    out[PAGES / "hook-reference.md"] = hook_reference()
    out[ROOT / "docs" / "public-bugs.md"] = public_bugs()
    return out


def filled(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        projects = {kind: write_plugin(NAME, kind, Path(folder, kind)) for kind in TEMPLATES_OF}

        def block(match: re.Match[str]) -> str:
            kind, _, inner = match[1].removesuffix(".in").partition("/")
            source = (projects[kind] / inner.replace("package/", f"rl_{NAME}/")).read_text(encoding="utf-8")
            return f"<!-- file: {match[1]} -->\n```python\n{source}```\n"

        text = re.sub(r"<!-- file: (\S+) -->\n```python\n.*?```\n", block, text, flags=re.DOTALL)
    rows = [
        f"| `{name}` | {kind.contract} | {', '.join(f'`{g}`' for g in kind.given) or '-'} |"
        for name, kind in COMPONENT_KINDS.items()
    ]
    rows = ["| kind | what its class does | what it is handed, if it takes it |", "|---|---|---|", *rows]
    return re.sub(r"<!-- kinds -->\n(\|.*\n)*", "<!-- kinds -->\n" + "\n".join(rows) + "\n", text)


def public_bugs() -> str:
    """Faults that users of other libraries reported, and the tests that hold rlcore free of them."""
    reported = json.loads((ROOT / "tests" / "public_bugs.json").read_text(encoding="utf-8"))
    covered: dict[str, list[str]] = {}
    for path in sorted([*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/*/tests/test_*.py")]):
        marks: list[str] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            marks += re.findall(r'^\s*@pytest\.mark\.public_bug\("([^"]+)"\)', line)
            name = re.match(r"\s*(?:def|class) ([Tt]est\w+)", line)
            if name:
                for mark in marks:
                    covered.setdefault(mark, []).append(f"`{path.relative_to(ROOT)}::{name[1]}`")
                marks = []
    lines = ["# Known faults of RL libraries, and our tests against them", ""]
    lines += [
        f"{sum(i in covered for i in reported)} of {len(reported)} are covered; the rest wait for what they are about."
    ]
    for section, title in SECTIONS.items():
        rows = {i: where for i, where in reported.items() if i.startswith(section) and i in covered}
        missing = [i for i in reported if i.startswith(section) and i not in covered]
        lines += ["", f"## {title}", ""]
        if rows:
            lines += ["| id | reported at | tests |", "|---|---|---|"]
            lines += [f"| {i} | {where} | {'<br>'.join(covered[i])} |" for i, where in rows.items()]
            lines += [""] if missing else []
        lines += [f"Not covered yet: {', '.join(missing)}."] if missing else []
    return "\n".join(lines) + "\n"


def hook_reference() -> str:
    """One part a hook: its exact signature and what its spec says."""
    source = inspect.getsource(hookspecs)
    lines = ["# Hook reference", "", "Written from `rlcore/plugins/hookspecs.py`, which is the contract.", ""]
    for part in re.split(r"\n# -- ", source)[1:]:
        title, _, body = part.partition("\n")
        names = [n for n in re.findall(r"^def (rlcore_\w+)\(", body, re.MULTILINE)]
        if not names:
            continue
        lines += [f"## {title.strip(' -').capitalize()}", ""]
        for name in names:
            function = getattr(hookspecs, name)
            options = function.rlcore_spec
            notes = [word for word in ("firstresult", "historic") if options[word]]
            mark = f"@hookspec({', '.join(f'{n}=True' for n in notes)})" if notes else "@hookspec"
            lines += [f"### {name}", "", "```python", mark, f"def {name}{signature(function)}", "```", ""]
            lines += [_plain(inspect.getdoc(function) or ""), ""]
    return "\n".join(lines).rstrip() + "\n"


def signature(function: Any) -> str:
    """As it is written."""
    return str(inspect.signature(function)).replace("'", "")


def _plain(doc: str) -> str:
    doc = re.sub(r":class:`([^`]+)`", r"`\1`", doc).replace("``", "`")
    return re.sub(r"^:param (\w+): ", r"- `\1`: ", doc, flags=re.MULTILINE)


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(PAGES.parent))
