"""How a world looks: the one place that knows which worlds tell of themselves, and which do not.

An :class:`~bamdp.envs.Environment` has a layout, labels and a truth to compare with. Of a Gymnasium environment, or of
one that is a function, nothing is known but numbers: its states are cells in a square, or on the grid that the
environment says it has; its own picture (``rgb_array``, else text) is shown beside them.
"""

from __future__ import annotations

import base64
import io
import math
import re
import warnings
from typing import Any

import numpy as np

from bamdp.envs.environment import Environment, World
from bamdp.envs.layout import GRID_MOVES, Layout
from bamdp.envs.registry import make_world

PICTURE_MODES = ("rgb_array", "ansi")  # in the order in which they are tried
MAX_PICTURE_SIDE = 640  # pixels
MAX_NUMBERED_STATES = 150  # states whose numbers can be read in their cells
MAX_TEXT = 4000  # characters of a picture in text
MOVE_OF_DIRECTION = dict(zip(("up", "right", "down", "left"), GRID_MOVES))
ACTION_NAMES = {  # of Gymnasium's own environments, by the beginning of their names
    "FrozenLake": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Taxi": ("down", "up", "right", "left", "pick up", "drop off"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("push left", "push right"),
    "MountainCar": ("push left", "coast", "push right"),
    "Acrobot": ("torque −1", "torque 0", "torque +1"),
}


def watched_world(spec: str) -> World:
    """Make a world to be looked at: one of Gymnasium that can paint itself is told to."""
    world = make_world(spec)
    if isinstance(world, Environment) or "render_mode" in spec:
        return world
    gym_env = getattr(world, "env", None)
    modes = (getattr(gym_env, "metadata", None) or {}).get("render_modes", ())
    for mode in (mode for mode in PICTURE_MODES if mode in modes):
        try:
            painted = make_world(f"{spec}{',' if '=' in spec.rpartition(':')[2] else ':'}render_mode={mode}")
            painted.reset(seed=0)
            if Appearance(painted).picture() is not None:
                return painted
        except Exception:  # painting may need packages that are not there; the world is the same without
            continue
    return world


class Appearance:
    """What can be drawn and told of a world.

    Examples
    --------
    >>> looks = Appearance(make_world("gym:FrozenLake-v1"))
    >>> looks.action_label(1, 0), looks.state_label(16), looks.layout()["width"]
    ('down', 'end', 4.0)
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.environment = world if isinstance(world, Environment) else None

    def layout(self) -> dict[str, Any]:
        """Return what `Environment.layout` returns, for any world."""
        if self.environment is not None:
            return self.environment.layout()
        n_states, n_actions = self.world.n_states, self.world.n_actions
        return {
            **self._plain_layout().data(None, int(getattr(self.world, "state", 0))),
            "state_labels": [self.state_label(s) for s in range(n_states)],
            "action_labels": [self.action_label(a) for a in range(n_actions)],
        }

    def state_label(self, state: int) -> str:
        """Return the label of a state."""
        if self.environment is not None:
            return self.environment.state_label(state)
        return "end" if state == getattr(self.world, "end", None) else str(state)

    def action_label(self, action: int, state: int | None = None) -> str:
        """Return the label of an action, where it has one; in some worlds it depends on the state."""
        if self.environment is not None:
            return self.environment.action_label(action, state)
        names = self._action_names()
        return names[action] if names else str(action)

    def picture(self) -> dict[str, Any] | None:
        """Return the world's own picture of its present state, or None.

        It has an ``image``, which is a data address, or ``text``: pieces, and whether a terminal would colour them.
        """
        gym_env = getattr(self.world, "env", None)
        if gym_env is None or getattr(gym_env, "render_mode", None) not in PICTURE_MODES:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # Gymnasium says what metadata should tell, which is not for here
                drawn = gym_env.render()
        except Exception:  # whatever an environment may raise: the page does without its picture
            return None
        if isinstance(drawn, str):
            return {"text": _pieces(drawn[:MAX_TEXT])}
        pixels = np.asarray(drawn)
        if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or not pixels.size:
            return None
        return {"image": _data_address(pixels[:, :, :3].astype(np.uint8))}

    def _action_names(self) -> tuple[str, ...]:
        name = str(getattr(self.world, "name", "")).rpartition("/")[2]
        names = next((names for head, names in ACTION_NAMES.items() if name.startswith(head)), ())
        return names if len(names) == self.world.n_actions else ()

    def _plain_layout(self) -> Layout:
        """Return the environment's own grid, or else all states in a square, row after row."""
        n_states, end = self.world.n_states, getattr(self.world, "end", None)
        listed = n_states - (end is not None)
        shape = self._grid_shape(listed)
        width = shape[1] if shape else max(1, math.ceil(math.sqrt(n_states)))
        row, column = np.divmod(np.arange(n_states), width)
        positions = np.column_stack([column, row]).astype(float)
        height = shape[0] if shape else int(row.max()) + 1
        if shape and end is not None:  # below the grid, where it is not drawn
            positions[end] = (width - 1) / 2, height + 1
        moves = [MOVE_OF_DIRECTION.get(name) for name in self._action_names()] if shape else []
        known = tuple(move for move in moves if move is not None)
        aims = known if len(known) == len(moves) else ()
        return Layout("grid", width, height, positions, moves=aims, named=n_states <= MAX_NUMBERED_STATES)

    def _grid_shape(self, n_cells: int) -> tuple[int, int] | None:
        """Return the rows and columns that an environment says it has, if they make up its states."""
        inner = getattr(getattr(self.world, "env", None), "unwrapped", None)
        shape = getattr(inner, "shape", None) or (getattr(inner, "nrow", 0), getattr(inner, "ncol", 0))
        try:
            rows, columns = (int(n) for n in shape)
        except (TypeError, ValueError):
            return None
        return (rows, columns) if rows * columns == n_cells > 0 else None


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Split what is written for a terminal into pieces, with and without colour.

    Examples
    --------
    >>> _pieces("\\x1b[41mS\\x1b[0mFF")
    [('S', True), ('FF', False)]
    """
    first, *others = re.split(r"\x1b\[([\d;]*)m", text)
    coded = [
        (first, False),
        *((piece, code not in ("", "0")) for code, piece in zip(others[::2], others[1::2])),
    ]
    return [(piece, coloured) for piece, coloured in coded if piece]


def _data_address(pixels: np.ndarray) -> str:
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((MAX_PICTURE_SIDE, MAX_PICTURE_SIDE))
    target = io.BytesIO()
    image.save(target, "PNG")
    return f"data:image/png;base64,{base64.b64encode(target.getvalue()).decode()}"
