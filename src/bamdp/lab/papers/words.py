"""Sentences of the page, each worded by what the runs say: what agrees, who wins, what was chosen and tried."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bamdp.lab.comparisons import Group
from bamdp.lab.papers import printed
from bamdp.lab.papers.beside import of_the_papers_length, speedup
from bamdp.lab.papers.evidence import Evidence, columns, sample_of
from bamdp.lab.papers.sweep_words import signed
from bamdp.lab.papers.verdicts import DSS, SPEEDUP, TARGETS
from bamdp.lab.results import EVALUATE, TUNE, Results, differing_parameters
from bamdp.lab.statistics import Estimate
from bamdp.lab.tables import overall
from bamdp.lab.tables.table import parameters_text
from bamdp.planners.tree_sizes import dss_calls
from bamdp.registry import PLANNERS, uses_prior

SINGLE = "dss-pi-single"  # the row of one prior, discount and leaf value for all environments
WITHOUT_PRIOR = tuple(name for name in PLANNERS if not uses_prior(name))
ROWS = (*DSS, SINGLE)
SHAPE = ("n_policies", "n_samples", "n_steps", "n_stages")


def missed(evidence: Evidence) -> list[str]:
    """What was tried where a target was missed."""
    whole = evidence.whole("dss2020/fair")
    lines = []
    for environment, aim in TARGETS.items():
        found = {name: sample_of(evidence.fair, environment, name) for name in DSS}
        means = [float(s.totals.mean()) for s in found.values() if s is not None]
        if whole is None or not means or max(means) >= aim:
            continue
        tried = "; ".join(_tried(whole, environment, name) for name, s in found.items() if s is not None)
        lines.append(f"Missed in {environment}, by {aim - max(means):.1f}. Tried: {tried}.")
    if lines:
        lines.append(
            "Tuning means of what was then chosen are higher than what it is worth: it was chosen for them. The "
            "evaluation, on other luck, is what counts."
        )
    return lines


def too_slow(evidence: Evidence) -> list[str]:
    """Where a step is not as fast as was aimed at: what it has to do, and in what time it would have to."""
    lines = []
    for sample in () if evidence.published is None else of_the_papers_length(evidence.published):
        ratio = speedup(sample)
        if sample.algorithm in DSS and ratio < SPEEDUP:
            own = 1e3 * float(sample.ms_per_step.mean())  # µs
            work = dss_calls(**{name: sample.configuration[name] for name in SHAPE})
            lines.append(
                f"Missed by {sample.algorithm} in {sample.environment}: a step draws and solves {work.policies} models "
                f"and simulates {work.calls} steps in the belief in {own / 1e3:.3g} ms, {own / work.policies:.3g} µs "
                f"for each model with its share of the steps; {SPEEDUP:g} times faster than Table 2 would be "
                f"{own * ratio / SPEEDUP / work.policies:.3g} µs."
            )
    return lines


def _tried(results: Results, environment: str, algorithm: str) -> str:
    """How many configurations, and the best of those that got farthest in whole runs."""
    held = results.select(TUNE, environment, algorithm)
    count = len({repr(dict(sample.configuration)) for sample in held})
    whole = [s for s in held if s.horizon == results.horizon(environment) and s.runs and not s.excluded]
    if not whole:
        return f"{count} configurations of {algorithm}"
    best = max(whole, key=lambda sample: (sample.runs, float(sample.totals.mean())))
    varied = {key: best.configuration[key] for key in differing_parameters(held) if key in best.configuration}
    return (
        f"{count} configurations of {algorithm}; of those that were run most often the best had "
        f"{best.totals.mean():.1f} in {best.runs} tuning runs ({parameters_text(varied)})"
    )


def agreement(results: Results) -> list[str]:
    """How many rows of Table 1 agree, and which do not."""
    found = {s: v for s in of_the_papers_length(results) if (v := printed.verdict(s)) is not None}
    if not found:
        return ["No row of the paper's Table 1 has been run yet."]
    rows = sum(len(row) for row in printed.paper()["table1"].values())
    counts = Counter(verdict.word for verdict in found.values())
    lines = [
        f"Of the {rows} entries of Table 1, {len(found)} were run here in full; "
        f"in agreement: {counts[printed.AGREES]}, "
        f"better here: {counts[printed.BETTER]}, worse: {counts[printed.WORSE]}."
    ]
    for word in (printed.BETTER, printed.WORSE):
        listed = [f"{s.algorithm} in {s.environment}" for s, verdict in found.items() if verdict.word == word]
        if listed:
            lines.append(f"{word.capitalize()} here: {', '.join(listed)}.")
    dss = Counter(verdict.word for s, verdict in found.items() if s.algorithm in DSS)
    rivals = counts - dss
    lines.append(f"DSS: {_counted(dss)}; the rivals: {_counted(rivals)}.")
    return lines


def winners(results: Results) -> list[str]:
    """Who is best in each environment, who cannot be told from it, and where DSS stands."""
    lines = []
    for group in columns(results):
        if group.best is None:
            continue
        near = [name for name in group.ranked if name in group.near_best and name != group.best]
        alike = f"; not distinguishable from it: {', '.join(near)}" if near else ""
        best = _estimate(group.summaries[group.best].mean)
        first = f"**{group.label}**{_so_far(results, group)}: {group.best} has the highest mean, {best}"
        lines.append(" ".join([f"{first}{alike}.", *_behind(group)]))
    if lines:
        lines.append(
            "Intervals of differences are of that pair alone; who is distinguishable is by a test corrected for all "
            "pairs, and of few runs nearly all must agree to pass it."
        )
    return lines


def ranking(results: Results) -> list[str]:
    """Over all environments together."""
    table = overall(results)
    ranked = [] if table is None else [row[0].text for row in table.rows if row[1].value is not None]
    if table is None or not ranked:
        return []
    first = next(row for row in table.rows if row[0].text == ranked[0])
    wins = Counter(name for group in columns(results) for name in group.ranked if name in group.near_best)
    lines = [_order(ranked, f"{first[1].text}, mean {first[2].text}")]
    if wins:
        listed = ", ".join(f"{name} {count}" for name, count in wins.most_common())
        lines.append(f"In how many environments each is the best or not distinguishable from it: {listed}.")
    return lines


def _order(ranked: list[str], score: str) -> str:
    """Who is first by the normalised score, who follows, and which number DSS is; one alone is no order."""
    if len(ranked) == 1:
        return f"Only {ranked[0]} is complete in all environments: normalised score (IQM) {score}."
    places = [f"{name} is number {ranked.index(name) + 1}" for name in DSS if name in ranked]
    first = (
        f"Of the {len(ranked)} that are complete in all environments, {ranked[0]} has the highest normalised score "
        f"(IQM {score}), followed by {' and '.join(ranked[1:3])}"
    )
    return "; ".join([first, *([", ".join(places)] if places else [])]) + "."


def stuck(results: Results) -> list[str]:
    """Runs that earned less than one who plays at random: a mean does not show them."""
    parts = []
    for group in columns(results):
        floor = None if group.ceilings is None else group.ceilings.random
        for name in group.ranked:
            totals = group.named[name].totals
            below = 0 if floor is None else int((totals < floor).sum())
            if below:
                parts.append(f"{name} in {group.label}, {below} of {len(totals)}")
    return [f"Runs with less than random play earns on average: {'; '.join(parts)}."] if parts else []


def choices_of_shapes(results: Results) -> list[str]:
    """What DSS chose of its own parameters, and where that is the most that it could."""
    chosen = [s for s in results.select(EVALUATE) if s.chosen and s.algorithm in DSS]
    if not chosen:
        return []
    tried = [s for name in DSS for s in results.select(TUNE, algorithm=name)]
    parts = []
    for key in ("n_policies", "n_stages", "leaf"):
        offered = {s.configuration[key] for s in tried if key in s.configuration}
        counts = Counter(s.configuration[key] for s in chosen)
        said = [f"{value} in {count}{_edge(value, offered)}" for value, count in counts.most_common()]
        parts.append(f"{key} = {', '.join(said)}")
    return [f"Of {len(chosen)} cells of DSS: {'; '.join(parts)}."]


def _edge(value: object, offered: set[Any]) -> str:
    whole = {x for x in offered if isinstance(x, int | float)}
    return " (the largest on offer)" if len(whole) > 1 and value == max(whole) else ""


def choices_of_priors(results: Results) -> list[str]:
    """Which priors and discounts the protocol chose where it had the choice."""
    held = [s for s in results.select(EVALUATE) if s.chosen and s.algorithm not in (*WITHOUT_PRIOR, SINGLE)]
    if not held:
        return []
    sparse = Counter(s.configuration["prior.beta"] for s in held if s.configuration["prior"] == "sparse")
    listed = ", ".join(f"β = {beta:g} in {count}" for beta, count in sorted(sparse.items()))
    betas = f" ({listed})" if listed else ""
    flat = sum(s.configuration["prior"] == "flat" for s in held)
    lines = [
        f"Of {len(held)} cells in which a prior was to be chosen, the sparse one was in {sum(sparse.values())}"
        f"{betas}, the flat one in {flat}."
    ]
    for group in columns(results):
        own = [s for s in held if s.environment == group.environment]
        discounts = Counter(s.configuration["discount"] for s in own)
        if discounts:
            listed = ", ".join(f"{g:g} by {count}" for g, count in sorted(discounts.items()))
            lines.append(f"Discounts in {group.label}: {listed}.")
    single = [s for s in results.select(EVALUATE, algorithm=SINGLE) if s.chosen]
    if single:
        keys = ("prior", "prior.alpha", "prior.beta", "discount", "leaf")
        chosen = {key: single[0].configuration[key] for key in keys if key in single[0].configuration}
        lines.append(f"The single choice for all environments: {parameters_text(chosen)}.")
    return lines


def ceiling(results: Results | None) -> list[str]:
    """What one who knows the maze gets, at best and with the discount of Appendix C's configurations."""
    known = None if results is None else results.ceilings.get("maze")
    if results is None or known is None:
        return []
    return [
        f"One who knows the maze gets {known.optimum:.0f} in {results.horizon('maze')} steps, and with the policy "
        f"that is optimal for γ = {known.discount:g} only {known.discounted:.0f}."
    ]


def _behind(group: Group) -> list[str]:
    """How far each form of DSS is behind the best."""
    pairs = [p for p in group.compared if group.best in (p.first, p.second)]
    lines = []
    for name in ROWS:
        pair = next((p for p in pairs if name in (p.first, p.second) and name != group.best), None)
        if pair is not None:
            lines.append(
                f"{name} gets {group.summaries[name].mean.value:.1f}, {signed(pair.gain(name))} against it."
            )
    return lines


def _so_far(results: Results, group: Group) -> str:
    """A word of warning as long as some have not been run."""
    asked = sum(environment == group.environment for environment, _ in results.cells)
    return f" (so far {len(group.named)} of {asked})" if len(group.named) < asked else ""


def _estimate(estimate: Estimate) -> str:
    return f"{estimate.value:.1f} [{estimate.low:.1f} to {estimate.high:.1f}]"


def _counted(counts: Counter[str]) -> str:
    kinds = (printed.AGREES, printed.BETTER, printed.WORSE)
    words = {printed.AGREES: "agree", printed.BETTER: "better", printed.WORSE: "worse"}
    return ", ".join(f"{counts[kind]} {words[kind]}" for kind in kinds if counts[kind]) or "none was run"
