"""One language of colours, in light and dark: an action has one colour wherever it is seen, a quantity one ramp.

The agent is coral, goals are green, flags amber, walls slate, as in :mod:`bamdp.envs`. Value is teal, visits indigo,
entropy (what is not known yet) rose. The page gets all of it as CSS variables; files get the light colours written out.
"""

from __future__ import annotations

import re

N_ACTIONS = 6  # colours; further actions begin again

LIGHT = {
    "paper": "#f6f4ee",
    "card": "#ffffff",
    "sunken": "#f1eee6",
    "ink": "#252c38",
    "muted": "#616977",
    "line": "#dedacf",
    "faint": "#ece8de",
    "cell": "#ffffff",
    "wall": "#414a5b",
    "agent": "#e0523f",
    "goal": "#2f8f60",
    "flag": "#d98f14",
    "wood": "#9b6a42",
    "accent": "#1d627c",
    "on-accent": "#ffffff",
    "danger": "#b3261e",
    "a0": "#c9741f",
    "a1": "#2e70a8",
    "a2": "#7a58a0",
    "a3": "#2f8a72",
    "a4": "#be556e",
    "a5": "#7a7a36",
}
DARK = {
    "paper": "#12161d",
    "card": "#1a202a",
    "sunken": "#141922",
    "ink": "#e9ebef",
    "muted": "#a0a9b8",
    "line": "#313a48",
    "faint": "#262e3a",
    "cell": "#222a36",
    "wall": "#0b0e13",
    "agent": "#ff7a66",
    "goal": "#4cbf86",
    "flag": "#f2b24a",
    "wood": "#b98558",
    "accent": "#6fc3d8",
    "on-accent": "#0d1a20",
    "danger": "#ff9a90",
    "a0": "#f0a04b",
    "a1": "#69aee6",
    "a2": "#b596dd",
    "a3": "#5cc4a8",
    "a4": "#ee8aa2",
    "a5": "#bdbd6a",
}
RAMPS = {
    "value": (
        ("#faf6e8", "#cee4d2", "#8bc7bc", "#4297a0", "#1d627c"),
        ("#1f2731", "#23414a", "#2a6470", "#3d919b", "#7ccfcf"),
    ),
    "visits": (
        ("#fbfaf5", "#dcdcf0", "#b1b3df", "#7f81c4", "#4b4b9b"),
        ("#1f2530", "#2e335a", "#454c8a", "#6b73c0", "#a7aef2"),
    ),
    "entropy": (
        ("#fdfaf6", "#f6dfd9", "#e9b6b1", "#d2848a", "#a84f66"),
        ("#1f2530", "#432f3c", "#6d4152", "#a25c70", "#e294a2"),
    ),
}
THEMES = (LIGHT, DARK)
for _name, _ramps in RAMPS.items():
    for _theme, _stops in zip(THEMES, _ramps):
        _theme.update({f"{_name}-{i}": stop for i, stop in enumerate(_stops)})


def css() -> str:
    """The variables of both themes: by what the system prefers, or by ``data-theme`` on the root."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in THEMES)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
    )


def written_out(style: str) -> str:
    """A style sheet with the light colours in place of variables, for programs that know none."""
    return re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: LIGHT[match[1]], style)


def shade(ramp: str, place: float) -> str:
    """The light colour at ``place`` in 0..1 of a ramp."""
    stops = RAMPS[ramp][0]
    x = min(max(place, 0.0), 1.0) * (len(stops) - 1)
    i = min(int(x), len(stops) - 2)
    low, high = (_rgb(stop) for stop in stops[i : i + 2])
    return "#" + "".join(f"{round(a + (x - i) * (b - a)):02x}" for a, b in zip(low, high))


def is_dark(colour: str) -> bool:
    """Whether white is easier to read on it than ink."""
    r, g, b = _rgb(colour)
    return 0.3 * r + 0.59 * g + 0.11 * b < 140


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
