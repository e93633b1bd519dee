"""Environments drawn with characters: grids as cells in a frame, other worlds as a row of states and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.envs.layout import shown_states, world_move

if TYPE_CHECKING:
    from bamdp.envs.environment import Environment

SIGNS = {"start": "S", "goal": "G", "flag": "⚑", "door_open": "/", "door_closed": "▒"}
ARROWS = {(0, -1): "↑", (1, 0): "→", (0, 1): "↓", (-1, 0): "←", (1, 1): "↘", (-1, 1): "↙"}
AGENT, FREE, WALL = "@", "·", "█"
MAX_LISTED = 40  # states; longer tables and rows are cut


def draw_text(env: Environment, policy: NDArray[np.int64] | None, values: NDArray[np.float64] | None) -> str:
    """Return an environment as text, whose first line names the present state; see `Environment.render`."""
    label, layout = env.state_label(env.state), env.geometry
    title = f"{env.name} · state {env.state}" + ("" if label == str(env.state) else f": {label}")
    title += " (terminated)" if env.terminated else ""
    if layout.kind == "grid" and not layout.named:
        return f"{title}\n\n{_draw_grid(env, policy, values)}"
    if layout.text:
        row = layout.text.replace(f"({env.state})", f"[{env.state}]")
    else:
        here, label_of, n = env.state, env.state_label, env.n_states
        if layout.kind == "arms":
            here, label_of, n = env.last_action, env.action_label, env.n_actions  # type: ignore[assignment]
        row = "  ".join(f"[{label_of(s)}]" if s == here else label_of(s) for s in range(min(n, MAX_LISTED)))
        row += "  ..." if n > MAX_LISTED else ""
    return "\n".join([title, "", row, *_draw_table(env, policy, values)])


def _draw_grid(env: Environment, policy: Any, values: Any) -> str:
    """Draw cells in a frame: the agent, else what is special there, else the policy's arrow; values beside."""
    layout, world = env.geometry, env.layout()
    width, height = int(layout.width), int(layout.height)
    signs = np.full((height, width), WALL, object)
    numbers = np.full((height, width), "", object)
    # an end may lie below, where nothing is drawn
    place = {s: (int(y), int(x)) for s, (x, y) in enumerate(world["positions"]) if y < height}
    for s in place.keys() & set(shown_states(world, env.state)):
        aim = None if policy is None or env.mdp.terminal[s] else world_move(world, s, int(policy[s]))
        signs[place[s]] = FREE if aim is None else ARROWS[int(aim[0]), int(aim[1])]
        numbers[place[s]] = "" if values is None else f"{values[s]:.2f}"
    for mark in layout.marks:
        taken = mark.kind == "flag" and world["layers"][env.state] & mark.bit
        if not taken and not (mark.kind == "start" and policy is not None):
            signs[mark.y, mark.x] = SIGNS[mark.kind]
    if env.state in place:
        signs[place[env.state]] = AGENT
    gap = max(map(len, numbers.ravel()))
    side = gap + 1 if gap else 0

    def cell(sign: str, number: str) -> str:
        return WALL * (3 + side) if sign == WALL else f" {sign} {f'{number:>{gap}} ' if side else ''}"

    lines = [f"│{''.join(map(cell, *row))}│" for row in zip(signs, numbers)]
    bar = "─" * (width * (3 + side))
    return "\n".join([f"┌{bar}┐", *lines, f"└{bar}┘"])


def _draw_table(env: Environment, policy: Any, values: Any) -> list[str]:
    """List states with their values and the policy's actions, if either is given."""
    if policy is None and values is None:
        return []
    lines = [""]
    for s in range(min(env.n_states, MAX_LISTED)):
        value = "" if values is None else f"{values[s]:>12.4f}"
        action = "" if policy is None or env.mdp.terminal[s] else f"   {env.action_label(int(policy[s]))}"
        lines.append(f"{env.state_label(s):>5}{value}{action}{'  ' + AGENT if s == env.state else ''}")
    more = env.n_states - MAX_LISTED
    return [*lines, f"  ... {more} more states"] if more > 0 else lines
