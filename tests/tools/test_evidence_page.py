"""The generated parts of the page on evidence: made of the committed runs, and equal to what is committed."""

from __future__ import annotations

from pathlib import Path

import evidence_page
import numpy as np
import pytest
from evidence_page import Found
from lab_samples import CEILINGS, sample
from reproduction_page import fill, marked

from bamdp.lab.reading import parse_study
from bamdp.lab.results import Results

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_committed_page_is_what_the_committed_runs_say():
    """If this fails, runs or tables were changed: `make evidence` writes the page again."""
    pages = [(ROOT / path).read_text(encoding="utf-8") for path in evidence_page.PAGES]
    with evidence_page.read_studies(ROOT / "results", evidence_page.STUDIES) as (found, source):
        parts = evidence_page.page_parts(found, source)
    assert {name for page in pages for name in marked(page)} == set(parts)
    for page in pages:
        assert fill(page, parts) == page


def evaluated(algorithm, totals, **other):
    return sample(totals, "gdl", algorithm, horizon=4, asked=len(totals), **other)


def family_results():
    rng = np.random.default_rng(0)
    world = rng.normal(size=30)
    rows = {"beb-law": 10.0, "beb-flat": 9.0, "beb-wrong": 5.0, "rmax": 7.0}
    return Results("t", tuple(evaluated(name, mean + world) for name, mean in rows.items()), {})


def test_a_family_has_a_row_for_each_algorithm_and_paired_differences():
    table = evidence_page._family_table(family_results(), "gdl", "total")
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert list(rows) == ["beb", "rmax"]  # by the best that each has
    assert [text for text in rows["rmax"][1:] if text != "–"] == ["3.00 [3.00 to 3.00]"]  # behind beb-law
    gains = [cell.value for cell in table.rows[0][4:]]
    assert gains == [None, pytest.approx(1.0), pytest.approx(5.0)]  # the worlds are the same, so they cancel
    assert "30 worlds" in table.title


def test_returns_are_discounted_from_the_first_reward():
    one = sample([10.0], horizon=4, traces=lambda: np.array([[1.0, 0.0, 2.0, 0.0]]))
    assert evidence_page.discounted_returns(one).tolist() == [1.0 + 2.0 * 0.95**2]


SECOND = """
environments = ["chain"]
runs = 4
[tuning]
configurations = 3
draws = 2
[algorithms.beb]
bonus = [0.1, 0.2, 0.3, 0.4, 0.5]
"""


def test_the_search_table_says_how_much_was_seen():
    study = parse_study(SECOND)
    cells = study.cells
    samples = [
        sample(np.arange(4.0) + d, algorithm=f"beb#{d + 1}", replicates=np.arange(4) + 4 * d, asked=4)
        for d in range(2)
    ]
    slow = cells[0].configurations[0]
    samples.append(sample([1.0], algorithm="beb#1", phase="tune", configuration=slow, excluded="too slow"))
    table = evidence_page.search_table(Found(study, Results("t", tuple(samples), {})))
    (row,) = [[cell.text for cell in row] for row in table.rows]
    distinct = {one["bonus"] for cell in cells for one in cell.configurations}
    assert row[:3] == ["chain", "beb", "2"]
    assert row[5:] == [f"{len(distinct)} of 5", "1"]
    assert table.rows[0][3].value == pytest.approx(2.0)


def test_too_slow_configurations_are_counted_by_their_stages():
    tuned = [
        sample([1.0], algorithm=f"dss-pi#{d}", phase="tune", configuration={"n_stages": h}, excluded=why)
        for d, h, why in ((1, 1, ""), (1, 2, "too slow"), (2, 2, "too slow"), (2, 3, "too slow"))
    ]
    (row,) = evidence_page.stage_table(Found(parse_study(SECOND), Results("t", tuple(tuned), {}))).rows
    assert [cell.text for cell in row] == [
        "chain",
        "dss-pi",
        "0 of 1",
        "1 of 1",
        "1 of 1",
    ]  # once, if drawn twice


TIMED = """
environments = ["chain"]
runs = 4
steps = 1000
[algorithms.beb-1ms]
planner = "beb"
[algorithms.beb-10ms]
planner = "beb"
[algorithms.beb-10ms.at.chain]
runs = 2
"""


def test_scores_within_a_time_are_of_cells_that_have_all_their_runs():
    known = CEILINGS["chain"]
    middle = 0.5 * (known.random + known.optimum)
    samples = (
        sample(middle + np.array([-1.0, 1.0]), algorithm="beb-10ms"),
        sample(np.full(3, known.optimum), algorithm="beb-1ms"),  # of four
    )
    found = Found(parse_study(TIMED), Results("t", samples, CEILINGS))
    scores = evidence_page.within_time(found)["chain"]["beb"]
    assert np.isnan(scores[:3]).all()
    assert scores[3] == pytest.approx([0.5, 1.0 / (known.optimum - known.random)])


def test_the_time_table_has_a_mean_only_where_every_environment_has_a_value():
    row = np.array([[np.nan, np.nan], [0.4, 0.01], [0.5, 0.02], [0.6, 0.0], [0.7, 0.04]])
    scores = {
        "chain": {"beb": row},
        "double_loop": {"beb": row},
        "grid5": {"beb": np.where(row == 0.4, np.nan, row)},
    }
    table = evidence_page.time_table(scores)
    (cells,) = table.rows
    assert [cell.text for cell in cells] == [
        "beb",
        "–",
        "–",
        "0.500 ± 0.012",
        "0.600 ± 0.000",
        "0.700 ± 0.023",
    ]
    assert table.header[1:] == ("10 µs", "100 µs", "1 ms", "10 ms", "100 ms")


def test_bad_episodes_of_the_seas_are_counted_and_sorted():
    """A good episode of size 10 costs 0.01 and pays 1; one that turns left at once pays nothing."""
    good = np.append(np.full(9, -0.001), 0.999)
    few = np.tile(np.concatenate([np.zeros(10), good, good, good]), (2, 1))
    many = np.tile(np.concatenate([np.zeros(30), good]), (2, 1))
    samples = [
        sample([0.0, 0.0], "deterministic", name, horizon=40, asked=2, traces=lambda rewards=rewards: rewards)
        for name, rewards in (("thompson", many), ("rmax", few))
    ]
    study = evidence_page.paper_study(evidence_page.SEAS)
    table = evidence_page.sea_table(Found(study, Results("t", tuple(samples), {})))
    assert [(row[0].text, row[1].value, row[2].value) for row in table.rows] == [
        ("rmax", 1.0, None),
        ("thompson", 3.0, 2.0),  # paired with the fewest
    ]


def test_a_study_without_exported_runs_has_a_line():
    parts = evidence_page.page_parts({}, "a machine")
    missing = {name for name, part in parts.items() if "has been exported yet" in part}
    assert missing == {"families", "second", "readme", "seas", "single", "time"} == set(parts) - {"state"}
