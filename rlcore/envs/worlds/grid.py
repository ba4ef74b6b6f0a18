"""Grid worlds: walk from the start to the goal, round holes, fires and walls. After RLgraph's GridWorld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction

from rlcore.envs.worlds.grid_maps import read_map
from rlcore.envs.worlds.single import WorldEnv
from rlcore.envs.worlds.streams import FloatArray, IntArray, Streams
from rlcore.envs.worlds.vector import WorldVectorEnv
from rlcore.envs.worlds.world import BoolArray, State, World, discrete
from rlcore.errors import ConfigError
from rlcore.specs import Tree

DX, DY = np.array([0, 1, 0, -1]), np.array([-1, 0, 1, 0])
"""What a step up, right, down and left adds to x (columns, from the left) and y (rows, from the top)."""
FORWARD, TURN, JUMP = 3, 3, 2


class GridWorld(World):
    """Deterministic: the rules are one table of following states, int64 [states, actions].

    A state is a cell, numbered down the columns (0 upper left, 1 the one below it: ``x * rows + y``); with container
    actions, ``cell * 4 + orientation``, where the orientation is 0 up, 1 right, 2 down, 3 left, and up at the start.

    A move into a wall or out of the map leads nowhere. The reward is that of the cell one is in after the step, also
    after a move that led nowhere.

    :param map: name of a map in :data:`rlcore.envs.worlds.grid_maps.MAPS`, or its rows.
    :param observation: ``discrete``: the state. ``xy``: float32 [2], x and y; with container actions float32 [4], x, y
        and what a step forward adds to x and y.
    :param actions: ``move``: Discrete(4), up, right, down, left. ``container``: a Dict, of which is done in turn

        * ``turn``: Discrete(3), a quarter to the left, not at all, to the right;
        * ``forward``: Discrete(3), a move back, none, a move forward (facing as before);
        * ``jump``: Discrete(2), 1 for two cells forward, over whatever lies between. Where one can't land on the second
          (a wall, or outside), on the first; where not there either, none. From a hole or a goal no one jumps.

        RLgraph said that walls can be jumped over, but its jump stopped at them; this one does not.
    :raises ConfigError: for a map that can't be read, or an option that is unknown.
    :ivar next_state: int64 [states, actions]. Container actions are numbered ``forward * 6 + turn * 2 + jump``.
    :ivar reward: float64 [states], of arriving in a state.
    :ivar terminal: bool [states], whether the episode ends there.
    :ivar start_state: int.
    """

    def __init__(
        self,
        *,
        map: str | Sequence[str] = "4x4",
        observation: Literal["discrete", "xy"] = "discrete",
        actions: Literal["move", "container"] = "move",
        goal_reward: float = 1.0,
        hole_reward: float = -5.0,
        fire_reward: float = -3.0,
        step_reward: float = -0.1,
    ) -> None:
        for name, value, known in [
            ("observation", observation, ("discrete", "xy")),
            ("actions", actions, ("move", "container")),
        ]:
            if value not in known:
                raise ConfigError(f"{name} is {value!r}, expected {' or '.join(known)}")
        self.cells = read_map(map)
        self._container = actions == "container"
        facings = 4 if self._container else 1
        rows, columns = self.cells.shape
        by_state = np.repeat(self.cells.T.ravel(), facings)
        rewards = {"G": goal_reward, "H": hole_reward, "F": fire_reward}
        self.reward: FloatArray = np.array([rewards.get(str(cell), step_reward) for cell in by_state], np.float64)
        self.terminal: BoolArray = np.isin(by_state, ["G", "H"])
        self.start_state = int(np.flatnonzero(by_state == "S")[0])
        self.next_state = _lands(self.cells, 1, np.arange(self.cells.size)[:, None])
        if self._container:
            jumps = _lands(self.cells, 2, self.next_state)
            self.next_state = _with_container(self.next_state, jumps, self.terminal[::4])
        self._table, self._num_actions = self.next_state.ravel(), self.next_state.shape[1]
        self._xy = _shown(rows, columns, self._container) if observation == "xy" else None
        if self._xy is None:
            self.observation_space = spaces.Discrete(len(by_state))
        else:
            high = np.array([columns - 1, rows - 1, 1, 1], np.float32)
            low = np.array([0, 0, -1, -1], np.float32)
            size = self._xy.shape[1]
            self.observation_space = spaces.Box(low[:size], high[:size])
        parts = {"forward": FORWARD, "jump": JUMP, "turn": TURN}
        self.action_space = (
            spaces.Dict({k: spaces.Discrete(n) for k, n in parts.items()}) if self._container else spaces.Discrete(4)
        )

    def actions(self, actions: Tree, n: int) -> IntArray:
        if not self._container:
            return discrete(actions, n, 4)
        if not isinstance(actions, Mapping) or set(actions) != {"forward", "turn", "jump"}:
            raise InvalidAction(f"actions are {actions!r}, expected a dict of forward, turn and jump")
        forward, turn = discrete(actions["forward"], n, FORWARD), discrete(actions["turn"], n, TURN)
        return (forward * TURN + turn) * JUMP + discrete(actions["jump"], n, JUMP)

    def start(self, streams: Streams) -> State:
        return np.full(streams.n, self.start_state, np.int64)

    def step(
        self, state: State, t: IntArray, action: np.ndarray[Any, Any], streams: Streams
    ) -> tuple[State, FloatArray, BoolArray]:
        following = self._table.take(state * self._num_actions + action)
        return following, self.reward.take(following), self.terminal.take(following)

    def observe(self, state: State, t: IntArray) -> Tree:
        return state.copy() if self._xy is None else self._xy.take(state, axis=0)


class GridWorldEnv(WorldEnv):
    """One :class:`GridWorld`, whose options it takes."""

    world_class = GridWorld


class GridWorldVectorEnv(WorldVectorEnv):
    """``num_envs`` of :class:`GridWorld`, whose options it takes."""

    world_class = GridWorld


def _lands(cells: np.ndarray, distance: int, otherwise: IntArray) -> IntArray:
    """The cell so far up, right, down and left of each, or ``otherwise`` where that is a wall or outside.

    str [rows, columns], otherwise: int64 [cells, 4 or 1]  ->  int64 [cells, 4]
    """
    rows, columns = cells.shape
    here = np.arange(rows * columns)[:, None]
    x, y = here // rows + distance * DX, here % rows + distance * DY
    inside = (x >= 0) & (x < columns) & (y >= 0) & (y < rows)
    x, y = np.clip(x, 0, columns - 1), np.clip(y, 0, rows - 1)
    return np.where(inside & (cells[y, x] != "W"), x * rows + y, otherwise)


def _with_container(moves: IntArray, jumps: IntArray, ends: BoolArray) -> IntArray:
    """Where container actions lead.   moves, jumps: int64 [cells, 4], ends: bool [cells]  ->  int64 [cells * 4, 18]"""
    cells = np.arange(len(moves))
    table = np.empty((len(moves), 4, FORWARD, TURN, JUMP), np.int64)
    for facing, forward, turn, jump in np.ndindex(table.shape[1:]):
        faces = (facing + turn - 1) % 4
        to = cells if forward == 1 else moves[:, faces if forward == 2 else (faces + 2) % 4]
        if jump:
            to = np.where(ends[to], to, jumps[to, faces])
        table[:, facing, forward, turn, jump] = to * 4 + faces
    return table.reshape(-1, FORWARD * TURN * JUMP)


def _shown(rows: int, columns: int, container: bool) -> np.ndarray:
    """x and y of each state, and where it faces.   ->  float32 [states, 2 or 4]"""
    cells = np.repeat(np.arange(rows * columns), 4 if container else 1)
    shown = [cells // rows, cells % rows]
    if container:
        shown += [np.tile(DX, rows * columns), np.tile(DY, rows * columns)]
    return np.stack(shown, axis=1).astype(np.float32)
