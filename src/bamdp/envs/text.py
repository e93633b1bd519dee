"""Worlds drawn with characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bamdp.envs.layout import Layout

if TYPE_CHECKING:
    from bamdp.envs.environment import Environment

_SIGNS = {"start": "S", "goal": "G", "flag": "⚑", "door_open": "/", "door_closed": "▒"}
_ARROWS = {(0, -1): "↑", (1, 0): "→", (0, 1): "↓", (-1, 0): "←", (1, 1): "↘", (-1, 1): "↙"}
_AGENT, _FREE, _WALL = "@", "·", "█"
_MAX_LINES = 40  # longer tables are cut


def world_text(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, values: NDArray[np.float64] | None
) -> str:
    """Return the world as text, whose first line names the present state; see `Environment.render`."""
    label = env.state_label(env.state)
    title = f"{env.name} · state {env.state}" + ("" if label == str(env.state) else f": {label}")
    if layout.kind == "grid":
        body = _grid(env, layout, policy, values)
    elif layout.kind == "arms":
        body = _arms(env, policy)
    else:
        body = _graph(env, layout, policy, values)
    return f"{title}{' (terminated)' if env.terminated else ''}\n\n{body}"


def _grid(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, values: NDArray[np.float64] | None
) -> str:
    """Draw cells in a frame: the agent, else what is special there, else the policy's arrow; values beside."""
    width, height = int(layout.width), int(layout.height)
    signs = [[_WALL] * width for _ in range(height)]
    numbers = [[""] * width for _ in range(height)]
    for s in layout.shown(env.state).tolist():
        x, y = map(int, layout.positions[s])
        if y >= height:  # an end may lie where nothing is drawn
            continue
        move = None if policy is None else layout.move(s, int(policy[s]))
        signs[y][x] = _FREE if move is None else _ARROWS[_unit(move)]
        numbers[y][x] = "" if values is None else f"{values[s]:.2f}"
    flags = layout.layer(env.state)
    for mark in layout.marks:
        taken = mark.kind == "flag" and flags & mark.bit
        if not taken and not (mark.kind == "start" and policy is not None):
            signs[int(mark.y)][int(mark.x)] = _SIGNS[mark.kind]
    x, y = map(int, layout.positions[env.state])
    if y < height:
        signs[y][x] = _AGENT
    gap = max(len(number) for line in numbers for number in line)
    side = gap + 1 if gap else 0

    def cell(sign: str, number: str) -> str:
        return _WALL * (3 + side) if sign == _WALL else f" {sign} " + (f"{number:>{gap}} " if side else "")

    rows = ["│" + "".join(map(cell, *line)) + "│" for line in zip(signs, numbers)]
    bar = "─" * (width * (3 + side))
    return "\n".join([f"┌{bar}┐", *rows, f"└{bar}┘"])


def _unit(move: tuple[float, float]) -> tuple[int, int]:
    return int(move[0]), int(move[1])


def _graph(
    env: Environment, layout: Layout, policy: NDArray[np.int64] | None, values: NDArray[np.float64] | None
) -> str:
    """Draw the layout's text, or list what each action may lead to; then a table of values and policy."""
    here = f"({env.state})"
    if layout.text:
        picture = re.sub(re.escape(here), f"[{env.state}]", layout.text)
    else:
        picture = "\n".join(_outcomes(env, a) for a in range(env.n_actions))
    if policy is None and values is None:
        return picture
    lines = []
    for s in range(min(env.n_states, _MAX_LINES)):
        value = "" if values is None else f"{values[s]:>12.4f}"
        action = "" if policy is None else f"   {env.action_label(int(policy[s]))}"
        lines.append(f"{s:>5}{value}{action}{'  ' + _AGENT if s == env.state else ''}")
    if env.n_states > _MAX_LINES:
        lines.append(f"  ... {env.n_states - _MAX_LINES} more states")
    return "\n".join([picture, "", *lines])


def _outcomes(env: Environment, action: int) -> str:
    """Return a line with what an action may lead to from here, the likeliest first."""
    states, chances = env.mdp.row(env.state, action)
    order = np.argsort(-chances, kind="stable")[:6]
    shown = ", ".join(f"{states[i]} ({chances[i]:.2f})" for i in order if chances[i] > 0)
    more = f", {len(states) - 6} more" if len(states) > 6 else ""
    return f"{env.action_label(action)} → {shown or 'nothing'}{more}"


def _arms(env: Environment, policy: NDArray[np.int64] | None) -> str:
    """Draw a bar per arm, as long as its mean reward."""
    lines = []
    for a, mean in enumerate(env.mdp.expected_rewards[0].tolist()):
        bar = "█" * round(20 * mean)
        last = _AGENT if a == env.last_action else " "
        chosen = "  ←" if policy is not None and policy[0] == a else ""
        lines.append(f"{last} {env.action_label(a)} {bar:░<20} {mean:.2f}{chosen}")
    return "\n".join(lines)
