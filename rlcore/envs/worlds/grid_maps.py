"""Maps of grid worlds.

=========== ==========================================================================================
character   cell
=========== ==========================================================================================
``S``       start; there is one
``.``       free (so is a blank)
``G``       goal: ends the episode
``H``       hole: ends the episode
``F``       fire: costs, and ends nothing
``W``       wall: can't be entered
=========== ==========================================================================================

4x4 and 8x8 are those of FrozenLake; all but ``four_rooms`` are as RLgraph had them. ``four_rooms`` is the one of
Sutton, Precup and Singh 1999, with RLgraph's start and goal (its last version added a hole and a fire).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlcore.errors import ConfigError, nearest

CELLS = "S.GHFW"
MAPS: Mapping[str, tuple[str, ...]] = {
    "chain": ("G....S..F.G",),
    "long_chain": ("." * 33 + "S" + "." * 33 + "G",),
    "2x2": (
        "SH",
        ".G",
    ),
    "4x4": (
        "S...",
        ".H.H",
        "...H",
        "H..G",
    ),
    "8x8": (
        "S.......",
        "........",
        "...H....",
        ".....H..",
        "...H....",
        ".HH...H.",
        ".H..H.H.",
        "...H...G",
    ),
    "four_rooms": (
        ".....W.....",
        ".....W.....",
        "........G..",
        ".....W.....",
        ".....W.....",
        "W.WWWW.....",
        ".....WWW.WW",
        ".....W.....",
        "..S..W.....",
        "...........",
        ".....W.....",
    ),
}


def read_map(given: str | Sequence[str]) -> np.ndarray:
    """A map by its name, or by its rows.   ->  str [rows, columns], one character a cell, one of ``S.GHFW``

    :raises ConfigError: for a name that is unknown, rows of different lengths, a character that is no cell, and
        another number of starts than one.
    """
    if isinstance(given, str):
        if given not in MAPS:
            raise ConfigError(f"there is no map '{given}'.{nearest(given, MAPS)} Known: {', '.join(MAPS)}")
        given = MAPS[given]
    rows = [list(line.replace(" ", ".")) for line in given]
    if not rows or not rows[0] or {len(r) for r in rows} != {len(rows[0])}:
        raise ConfigError(f"the rows of the map have lengths {[len(r) for r in rows]}, expected the same, 1 or more")
    cells = np.array(rows)
    if unknown := sorted({str(c) for c in cells.flat} - set(CELLS)):
        raise ConfigError(f"the map has {unknown}, expected {', '.join(CELLS)} or blank")
    if (starts := np.count_nonzero(cells == "S")) != 1:
        raise ConfigError(f"the map has {starts} starts (S), expected one")
    return cells
