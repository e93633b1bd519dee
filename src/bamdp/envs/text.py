"""Environments rendered as text: grids as framed cells, other environments as a row of states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bamdp.envs.environment import Environment

SIGNS = {"start": "S", "goal": "G", "flag": "⚑", "door_open": "/", "door_closed": "▒"}
AGENT, FREE, WALL = "@", "·", "█"
MAX_LISTED = 40  # states; longer rows are truncated


def draw_text(env: Environment) -> str:
    """Return an environment as text, with the current state in the first line; see `Environment.render`."""
    label, layout = env.state_label(env.state), env.geometry
    title = f"{env.name} · state {env.state}" + ("" if label == str(env.state) else f": {label}")
    title += " (terminated)" if env.terminated else ""
    if layout.kind == "grid" and not layout.named:
        return f"{title}\n\n{_draw_grid(env)}"
    if layout.text:
        return f"{title}\n\n{layout.text.replace(f'({env.state})', f'[{env.state}]')}"
    data, here = env.layout(), env.last_action if layout.kind == "arms" else env.state
    names = data["action_labels" if layout.kind == "arms" else "state_labels"]
    row = [f"[{name}]" if i == here else name for i, name in enumerate(names[:MAX_LISTED])]
    return "\n".join([title, "", "  ".join(row + ["..."] * (len(names) > MAX_LISTED))])


def _draw_grid(env: Environment) -> str:
    """Draw cells in a frame, each showing the agent or the cell's mark."""
    layout = env.geometry
    width, height = int(layout.width), int(layout.height)
    signs = np.full((height, width), WALL, object)
    held = 0 if layout.layers is None else int(layout.layers[env.state])
    cells = layout.positions[layout.positions[:, 1] < height].astype(int)  # an end may lie below
    signs[cells[:, 1], cells[:, 0]] = FREE
    for mark in layout.marks:
        if not held & mark.bit:
            signs[mark.y, mark.x] = SIGNS[mark.kind]
    x, y = layout.positions[env.state].astype(int)
    if y < height:
        signs[y, x] = AGENT
    lines = ["".join(3 * WALL if sign == WALL else f" {sign} " for sign in row) for row in signs]
    bar = "─" * (3 * width)
    return "\n".join([f"┌{bar}┐", *(f"│{line}│" for line in lines), f"└{bar}┘"])
