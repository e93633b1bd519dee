"""What the page comes to, in a few sentences at its top, each worded by what the runs say."""

from __future__ import annotations

from collections import Counter

from bamdp.lab.comparisons import Group
from bamdp.lab.papers import printed, words
from bamdp.lab.papers.beside import of_the_papers_length, speedup
from bamdp.lab.papers.evidence import Evidence, columns
from bamdp.lab.papers.sweep_words import signed
from bamdp.lab.papers.verdicts import DSS, SPEEDUP, TARGETS, reward_targets
from bamdp.lab.results import Results

RIVALS = ("bamcp", "bfs3", "sboss")  # of the paper's Table 1


def headlines(evidence: Evidence) -> list[str]:
    """Table 1 again, who wins with equal chances, DSS against the paper's own rivals, and the targets."""
    lines = []
    if evidence.published is not None:
        lines += _again(evidence.published)
    if evidence.fair is not None:
        lines += words.ranking(evidence.fair)[:1]
        lines += _against_rivals(evidence.fair)
    return [*lines, *_aims(evidence)]


def _again(results: Results) -> list[str]:
    found = [(s, v) for s in of_the_papers_length(results) if (v := printed.verdict(s)) is not None]
    if not found:
        return []
    counts = {
        kind: Counter(v.word for s, v in found if (s.algorithm in DSS) == kind) for kind in (True, False)
    }
    parts = [
        f"of {sum(count.values())} entries of {name}, {count[printed.AGREES]} in agreement, {count[printed.BETTER]} "
        f"better here, {count[printed.WORSE]} worse"
        for name, count in (("DSS", counts[True]), ("its rivals", counts[False]))
        if count
    ]
    return [f"With the paper's own parameters, beside its Table 1: {'; '.join(parts)}."]


def _against_rivals(results: Results) -> list[str]:
    """The better form of DSS and the best rival, world by world, both with what they chose."""
    parts = [said for group in columns(results) if (said := _duel(group))]
    if not parts:
        return []
    return [
        f"With equal chances, the better form of DSS against the best of the paper's own rivals: {'; '.join(parts)}."
    ]


def _duel(group: Group) -> str:
    own, rival = (
        next((name for name in group.ranked if name in names and group.named[name].runs), None)
        for names in (DSS, RIVALS)
    )
    pair = next((p for p in group.compared if {p.first, p.second} == {own, rival}), None)
    if own is None or rival is None or pair is None:
        return ""
    gap = pair.gain(own)
    told = ("ahead" if gap.value > 0 else "behind") if pair.distinguishable else "not distinguishable"
    return f"in {group.label} {own} {signed(gap)} against {rival}, {told}"


def _aims(evidence: Evidence) -> list[str]:
    verdicts = [row[-1].text for row in reward_targets(evidence).rows]
    if all(word == "not run yet" for word in verdicts):
        return []
    met = sum(word.startswith("met") for word in verdicts)
    line = f"Of the {len(TARGETS)} targets for tuned DSS, {met} were met"
    if evidence.published is not None:
        ratios = [
            r
            for s in of_the_papers_length(evidence.published)
            if s.algorithm in DSS and (r := speedup(s)) > 0
        ]
        fast = sum(ratio >= SPEEDUP for ratio in ratios)
        line += f"; a step was to be {SPEEDUP:g} times as fast as the paper's, and is in {fast} of {len(ratios)} cases"
    return [f"{line}."]
