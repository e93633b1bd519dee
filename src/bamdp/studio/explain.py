"""Explanation of a decision and its tree: plain data for the page, a self-contained page, and a picture.

The page (``why.html``) embeds the studio's drawings and scripts, and the details of every clickable element. The
picture (``why.svg``) has explicit colours, which makes it suitable for talks and papers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

import numpy as np

import bamdp
from bamdp import _checks
from bamdp.beliefs.belief import Belief
from bamdp.envs.drawing import (
    Point,
    action_css,
    colour_of,
    element,
    figure,
    group,
    markup,
    palette_css,
    placed,
    shape,
    text_element,
    view_box,
    with_colours,
)
from bamdp.envs.picture import draw_world
from bamdp.planners import DSS
from bamdp.planners.tree import CHOICE, ROOT
from bamdp.registry import label
from bamdp.studio.tree import draw_tree
from bamdp.studio.view import Watcher, describe_world, finite, short

if TYPE_CHECKING:
    from bamdp.studio.playback import Playback

MAX_CHANGES = 12  # belief changes listed per node
MAX_PATH_STEPS = 400  # drawn per path
MAX_CHOICE_PATHS = 16  # drawn per choice
STATIC_FILES = Path(__file__).with_name("static")
TEMPLATES = Path(__file__).with_name("templates")
PAGE_SCRIPTS = ("dom.js", "tip.js", "world.js", "why.js", "file.js")
PAGE_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
FORMATS = (".html", ".svg")
PICTURE_WIDTH = 1360.0
WORLD_SIDE = 400.0  # size of the environment in the picture


class Decision:
    """The decision to be made at the current step of a run."""

    def __init__(self, run: Playback) -> None:
        self.t, self.state, self.env = run.t, run.state, run.env
        self.planner, self.discount = run.setting.planner, run.agent.discount
        self.belief = run.agent.belief.copy()
        self.plan = run.agent.plan(run.state, tree=True)
        self.tree: Any = self.plan.tree  # None if the planner builds no tree

    def name(self, action: int) -> str:
        """Return the label of an action in the current state."""
        return self.env.action_label(action, self.state)

    def data(self) -> dict[str, Any]:
        """Return everything except node details as plain data for JSON."""
        data: dict[str, Any] = {
            "t": self.t,
            "action": self.plan.action,
            "sentence": self.sentence(),
            "candidates": self.candidates(),
            "policies": isinstance(self.planner, DSS),
            "tree": None,
        }
        if self.tree is not None:
            drawing, shown = self.draw_tree()
            data["tree"] = {
                "svg": markup(drawing),
                "nodes": {node: self.brief(node) for node in shown},
                "caption": self.caption(len(shown)),
            }
        return data

    def draw_tree(self) -> tuple[Element, list[int]]:
        """Return the drawing of the decision's tree, and the nodes in it."""
        return draw_tree(self.tree, [self.name(a) for a in range(self.belief.n_actions)])

    def caption(self, shown: int) -> str:
        """Return a caption for the drawing of the tree."""
        total = max(len(self.tree), self.tree.total)
        some = f"{shown:,} of {total:,} nodes are drawn, the most likely first. " if shown < total else ""
        gains = " Green dots are rewards." if isinstance(self.planner, DSS) else ""
        return (
            f"{some}A square is a choice, in the colour of its action. A circle is a hyper-state: a state together "
            f"with what the agent would have learned on the way there.{gains}"
        )

    def candidates(self) -> list[dict[str, Any]]:
        """Return the choices at the root as table rows."""
        plan, tree = self.plan, self.tree
        nodes = [] if tree is None else tree.children(ROOT).tolist()
        by_action = {int(tree.action[node]): node for node in nodes}
        one_each = len(nodes) == len(plan.candidates)
        lower = plan.details.get("lower")  # per action, or for the whole state
        lower = lower if isinstance(lower, Mapping) else {}
        rows = []
        for i, c in enumerate(plan.candidates):
            node = nodes[i] if one_each else by_action.get(c.action)
            row = {
                "action": c.action,
                "label": self.name(c.action),
                "value": finite(c.value),
                "spread": finite(c.spread),
                "exact": c.exact,
                "count": c.count,
                "node": node,
                "chosen": c.action == plan.action if node is None else bool(tree.chosen[node]),
                "lower": finite(lower.get(c.action, math.nan)),
            }
            rows.append(row)
        return rows

    def sentence(self) -> str:
        """Describe the decision in words."""
        plan, begin = self.plan, f"Next: {self.name(self.plan.action)}"
        if plan.details.get("followed_from_last_plan"):
            return f"{begin}. The agent still follows the policy of its last plan, so it did not search."
        if not math.isfinite(plan.value):
            return f"{begin}. This planner assigns no values to actions."
        others = [c for c in plan.candidates if c.action != plan.action and math.isfinite(c.value)]
        best = max(others, key=lambda c: c.value, default=None)
        rival = (
            ""
            if best is None
            else f"; the best that starts with {self.name(best.action)}: {short(best.value)}"
        )
        late = "" if plan.reproducible else " (A time limit determines how far it searches.)"
        if not isinstance(self.planner, DSS):
            return f"{begin}, worth {short(plan.value)}{rival}.{late}"
        p = self.planner
        length = f"{p.n_steps} steps" if p.n_stages == 1 else f"{p.n_stages} stages of {p.n_steps} steps"
        return (
            f"{begin}. Of {_several(len(plan.candidates), 'policy', 'policies')} drawn from the belief, the best "
            f"earned {short(plan.value)} on average over {_several(p.n_samples, 'rollout')} of {length}"
            f"{rival}.{late}"
        )

    # --- nodes ----------------------------------------------------------------------------------------------

    def brief(self, node: int) -> dict[str, Any]:
        """Return the data shown when hovering over a node, including its paths through the environment."""
        tree = self.tree
        choice = tree.kind[node] == CHOICE
        numbers = {name: float(getattr(tree, name)[node]) for name in ("reward", "share", "spread", "lower")}
        return {
            "kind": "choice" if choice else "hyper-state",
            "action": int(tree.action[node]),
            "label": self.env.action_label(int(tree.action[node]), int(tree.state[node])) if choice else "",
            "value": finite(float(tree.value[node])),
            "count": int(tree.count[node]),
            "chosen": bool(tree.chosen[node]),
            **{name: finite(number) for name, number in numbers.items() if math.isfinite(number)},
            "title": self._title(node),
            "ways": self._paths(node),
        }

    def detail(self, node: int) -> dict[str, Any]:
        """Return the details of a clicked node: the simulated experience leading to it, and the resulting belief."""
        tree = self.tree
        _checks.index(node, "node", len(tree))
        steps = [] if node == ROOT else tree.history(node)
        kept = [step for step in steps if math.isfinite(step.r)]
        posterior = self.belief.copy()
        for step in kept:
            if posterior.episodes.ends[step.s]:  # over a lifetime: the next episode begins
                posterior.begin(step.s2)
            else:
                posterior.observe(*step)
        pairs = list(dict.fromkeys((step.s, step.a) for step in kept))
        changes = sorted((self._change(posterior, s, a, kept) for s, a in pairs), key=lambda c: -c["moved"])
        below = tree.children(node)[:MAX_CHANGES].tolist()
        return {
            **self.brief(node),
            "node": node,
            "steps": len(steps),
            "gained": finite(math.fsum(self.discount**k * step.r for k, step in enumerate(kept))),
            "changes": changes[:MAX_CHANGES],
            "more_changes": max(len(changes) - MAX_CHANGES, 0),
            "choices": [self.brief(child) for child in below if tree.kind[child] == CHOICE],
        }

    def _change(self, posterior: Belief, s: int, a: int, steps: list[Any]) -> dict[str, Any]:
        """Return the change in the prediction for one state-action pair."""
        before, after = self.belief.predictive(s, a), posterior.predictive(s, a)
        top = np.argsort(-np.maximum(before, after), kind="stable")[:3]
        return {
            "state": s,
            "label": self.env.state_label(s),
            "action": a,
            "action_label": self.env.action_label(a, s),
            "times": sum(1 for step in steps if (step.s, step.a) == (s, a)),
            "moved": round(float(np.abs(after - before).sum()) / 2, 4),
            "next": [[int(i), round(float(before[i]), 3), round(float(after[i]), 3)] for i in top],
        }

    def _title(self, node: int) -> str:
        tree = self.tree
        state = int(tree.state[node])
        where = f"state {self.env.state_label(state)}"
        if tree.kind[node] != CHOICE:
            return "now" if node == ROOT else f"{where}, {_several(int(tree.depth[node]), 'step')} ahead"
        name = self.env.action_label(int(tree.action[node]), state)
        return f"a policy that starts with {name}" if tree.policy[node] >= 0 else f"{name} in {where}"

    def _paths(self, node: int) -> list[list[int]]:
        """Return state paths: from the root to a hyper-state, or all paths that result from a choice."""
        tree = self.tree
        ends = tree.children(node)[:MAX_CHOICE_PATHS].tolist() if tree.kind[node] == CHOICE else [node]
        paths = [[self.state, *(step.s2 for step in tree.history(end))] for end in ends if end != ROOT]
        return [path[:MAX_PATH_STEPS] for path in paths]


def _several(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


# Files


def write_explanation(target: Path, run: Playback) -> None:
    """Write the decision at the current step of a run; the file extension selects the format."""
    make = as_html if target.suffix == ".html" else as_svg
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(make(run), encoding="utf-8")


def run_facts(run: Playback) -> str:
    """Describe the run in one line."""
    return (
        f"{run.setting.env}, {label(run.setting.planner)}, prior {label(run.setting.prior)}, "
        f"discount {run.setting.discount}, objective {run.setting.objective}, seed {run.setting.seed}, step {run.t}"
    )


# --- the page ------------------------------------------------------------------------------------------------------


def as_html(run: Playback) -> str:
    """Return the decision as a self-contained page."""
    import jinja2

    decision = Decision(run)
    world = describe_world(run.env, run.setting.first_discount, run.end)
    why = decision.data()
    nodes = why["tree"]["nodes"] if why["tree"] else {}
    data = {
        "world": {**world, "scene": draw_world(world).data()},
        "frame": Watcher(run, world).frame(),
        "why": why,
        "details": {node: decision.detail(int(node)) for node in nodes},
    }
    templates = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True)
    templates.policies["json.dumps_kwargs"] = {"allow_nan": False, "ensure_ascii": False}
    return templates.get_template("why.html").render(
        title=f"Why {decision.name(decision.plan.action)}? {run.env.name}, step {run.t}",
        facts=run_facts(run),
        policy=PAGE_POLICY,
        version=bamdp.__version__,
        style=palette_css() + _static("scene.css") + _static("studio.css"),
        script="\n".join(
            re.sub(r"^(export |import .*\n)", "", _static(name), flags=re.M) for name in PAGE_SCRIPTS
        ),
        data=data,
    )


def _static(name: str) -> str:
    return (STATIC_FILES / name).read_text(encoding="utf-8")


# --- the picture ---------------------------------------------------------------------------------------------------


def as_svg(run: Playback) -> str:
    """Return a picture with environment and tree side by side, and the candidates below the environment."""
    decision = Decision(run)
    world = describe_world(run.env, run.setting.first_discount, run.end)
    frame = Watcher(run, world).frame()
    values = [row["reward"] for row in frame["expects"]] if world["kind"] == "arms" else frame["value"]
    last, policy = frame["last_action"], None if world["kind"] == "arms" else frame["policy"]
    drawn = draw_world(world, run.state, values, policy, last_action=last)
    scene = drawn.figure
    scene.find("g[@class='rollouts']").extend(_rollouts(decision, [drawn.centres[i] for i in drawn.place]))  # type: ignore[union-attr]
    _, _, wide, high = view_box(scene)
    scale, top = WORLD_SIDE / max(wide, high), 96.0
    parts = [
        text_element(28, 38, f"Why {decision.name(decision.plan.action)}?", class_="headline"),
        text_element(28, 62, decision.sentence(), class_="said"),
        text_element(28, 82, run_facts(run), class_="facts"),
        placed(scene, 28, top, wide * scale, high * scale),
    ]
    under = top + high * scale
    under += 18
    bounds = " to ".join(map(short, drawn.range))
    parts.append(text_element(28, under, f"colours: believed value, from {bounds}", class_="facts"))
    table, bottom = _table(decision.candidates(), 28, under + 30)
    parts.append(table)
    if decision.tree is not None:
        tree, shown = decision.draw_tree()
        _, _, tree_wide, tree_high = view_box(tree)
        left = 28 + WORLD_SIDE + 36
        tall = tree_high * (PICTURE_WIDTH - left - 20) / tree_wide
        parts.append(placed(tree, left, top - 8, PICTURE_WIDTH - left - 20, tall))
        for line in decision.caption(len(shown)).split(". "):
            tall += 17
            parts.append(text_element(left, top + tall, f"{line.rstrip('.')}.", class_="facts"))
        bottom = max(bottom, top + tall)
    size = PICTURE_WIDTH, bottom + 24
    style = element("style", _static("scene.css") + _static("file.css") + action_css())
    back = element("rect", class_="back", width=size[0], height=size[1])
    shown_size: dict[str, Any] = {"width": size[0], "height": size[1]}
    picture = figure(size, style, back, *parts, label=decision.sentence(), class_="scene", **shown_size)
    return with_colours(markup(picture))


def _rollouts(decision: Decision, centre: list[Point]) -> list[Element]:
    """Draw the rollouts of the selected policy; ``centre`` contains the position of each state."""
    node = next((c["node"] for c in decision.candidates() if c["chosen"]), None)
    if node is None or not isinstance(decision.planner, DSS):
        return []
    brief = decision.brief(node)
    lines = []
    for i, way in enumerate(brief["ways"]):
        dx, dy = 6 * math.cos(2.4 * i), 6 * math.sin(2.4 * i)
        points = [(x + dx, y + dy) for x, y in (centre[s] for s in way)]
        for class_ in ("halo", f"stroke{colour_of(brief['action'])}"):
            lines.append(shape(points, closed=False, class_=class_))
    return lines


def _table(candidates: list[dict[str, Any]], left: float, top: float) -> tuple[Element, float]:
    """Draw the table of candidates; return it and the y coordinate of its lower end."""
    rows = [("choice", "value", "spread", "count", "head", None)]
    for c in candidates[:20]:
        spread = "exact" if c["exact"] else short(c["spread"])
        look = "row chosen" if c["chosen"] else "row"
        rows.append((c["label"], short(c["value"]), spread, str(c["count"] or "–"), look, c["action"]))
    parts = []
    for i, (name, *numbers, look, action) in enumerate(rows):
        y = top + 22 * i
        if action is not None:
            box = {"x": left, "y": y - 11, "width": 12, "height": 12, "rx": 3}
            parts.append(element("rect", class_=f"fill{colour_of(action)}", **box))
        parts.append(text_element(left + 20, y, name, class_=look, text_anchor="start"))
        for x, number in zip((190, 280, 360), numbers):
            parts.append(text_element(left + x, y, number, class_=look, text_anchor="end"))
    return group(*parts, class_="table"), top + 22 * len(rows)
