"""Sentences on the ablation, each worded by what the runs say: what more of it buys, and what is best at equal cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bamdp.lab.papers.sweeps import Point, has_base, points
from bamdp.lab.papers.trends import (
    BEYOND,
    FALLS,
    FLAT,
    PERHAPS_FALLS,
    PERHAPS_RISES,
    RISES,
    UP_TO,
    Trend,
    trends,
)
from bamdp.lab.results import Results
from bamdp.lab.statistics import Estimate

COMPARABLE = (0.67, 1.5)  # times Appendix C's time of a step that count as equal cost
SHAPES = ("N", "M", "K", "H", "N-one-stage", "trade")  # with Appendix C's prior and discount
NAMES = {"N": "N", "M": "M", "K": "K", "H": "H", "N-one-stage": "N with a single stage",
         "M-one-stage": "M with a single stage and a belief that soon is sure"}  # fmt: skip


def more(results: Results) -> list[str]:
    """What the trends come to, parameter by parameter."""
    found = trends(results)
    lines = []
    for sweep, name in NAMES.items():
        around = all(has_base(sweep, trend.environment) for trend in found if trend.sweep == sweep)
        middle = "Appendix C's" if around else "the middle value"
        halves = {
            f"up to {middle}": [t for t in found if (t.sweep, t.half) == (sweep, UP_TO)],
            "beyond it": [t for t in found if (t.sweep, t.half) == (sweep, BEYOND)],
        }
        parts = [f"{said}, {_by_word(own)}" for said, own in halves.items() if own]
        if parts:
            lines.append(f"Larger {name}: {'; '.join(parts)}.")
    return lines


def hurting(results: Results) -> list[str]:
    """Where more samples, steps or stages are worse."""
    found = trends(results)
    if not found:
        return []
    firm, weak = ([_said(t) for t in found if t.word == word] for word in (FALLS, PERHAPS_FALLS))
    parts = [joined(firm) if firm else "nowhere"] + ([f"perhaps {joined(weak)}"] if weak else [])
    return [f"Where more hurts: {'; '.join(parts)}."]


def _said(trend: Trend) -> str:
    return (
        f"{trend.sweep} in {trend.environment} ({trend.high} against {trend.low}, {signed(trend.difference)})"
    )


def _by_word(found: Sequence[Trend]) -> str:
    """Such as "rises in grid5, falls in maze"."""
    order = (RISES, PERHAPS_RISES, FLAT, PERHAPS_FALLS, FALLS)
    places = {word: [t.environment for t in found if t.word == word] for word in order}
    return ", ".join(f"{word} in {joined(held)}" for word, held in places.items() if held)


def joined(names: Sequence[str]) -> str:
    """Such as "a, b and c"."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def equal_cost(results: Results) -> list[str]:
    """The best shape that costs about as much as Appendix C's, in each environment."""
    lines = []
    for environment in results.environments:
        held = [p for p in points(results, environment) if p.sweep in SHAPES]
        base = next((p for p in held if p.base), None)
        if base is None:
            continue
        near = [p for p in held if COMPARABLE[0] * base.ms <= p.ms <= COMPARABLE[1] * base.ms]
        best = _best(near)
        lines.append(_best_shape(environment, base, best, len({_shape(p) for p in near})))
    return lines


def beliefs(results: Results) -> list[str]:
    """The best prior, discount and leaf value around Appendix C's in each environment."""
    lines = []
    names = {"prior": "prior", "beta": "β of the sparse prior", "gamma": "γ", "leaf": "leaf value"}
    for sweep, name in names.items():
        parts = list(_best_beliefs(results, sweep))
        if parts:
            lines.append(f"Best {name}: {'; '.join(parts)}.")
    return lines


def _best_beliefs(results: Results, sweep: str) -> Iterator[str]:
    for environment in results.environments:
        held = [p for p in points(results, environment) if p.sweep == sweep]
        if len(held) < 2 or not any(p.base for p in held):
            continue
        best = _best(held)
        gain = "Appendix C's own" if best.base else f"{signed(best.less_base)}, {_told(best)}"
        yield f"{best.label} in {environment} ({gain})"


def _best_shape(environment: str, base: Point, best: Point, count: int) -> str:
    first = (
        f"{environment}: of {count} shapes that cost {COMPARABLE[0]:g} to {COMPARABLE[1]:g} times as much as"
    )
    if best.base:
        return f"{first} Appendix C's {_shape(base)}, none has a higher mean."
    return (
        f"{first} Appendix C's {_shape(base)}, (N, M, K, H) = {_shape(best)} has the highest mean, "
        f"{signed(best.less_base)}, {_told(best)}; its depth KH is {_depth(best)} to Appendix C's {_depth(base)}."
    )


def _best(held: Sequence[Point]) -> Point:
    """The highest mean; of equal ones Appendix C's."""
    return max(held, key=lambda point: (point.mean, point.base))


def _shape(point: Point) -> str:
    keys = ("n_policies", "n_samples", "n_steps", "n_stages")
    return "(" + ", ".join(str(point.sample.configuration[key]) for key in keys) + ")"


def _depth(point: Point) -> int:
    return int(point.sample.configuration["n_steps"] * point.sample.configuration["n_stages"])


def _told(point: Point) -> str:
    return "different" if point.different else "not distinguishable"


def signed(estimate: Estimate) -> str:
    """A difference with its interval."""
    return f"{estimate.value:+.1f} [{estimate.low:+.1f} to {estimate.high:+.1f}]"
