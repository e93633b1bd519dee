"""The generated parts of the page on evidence: made of the committed runs, and equal to what is committed."""

from __future__ import annotations

from pathlib import Path

import evidence_page
import numpy as np
import pytest
from evidence_page import Found
from lab_samples import sample
from reproduction_page import fill, marked

from bamdp.lab.reading import parse_study
from bamdp.lab.results import Results

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_committed_page_is_what_the_committed_runs_say():
    """If this fails, runs or tables were changed: `make evidence` writes the page again."""
    page = (ROOT / evidence_page.PAGE).read_text(encoding="utf-8")
    with evidence_page.read_studies(ROOT / "results", evidence_page.STUDIES) as found:
        parts = evidence_page.page_parts(found, evidence_page.within_time(found))
    assert set(marked(page)) == set(parts)
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
    assert rows["rmax"][1:] == ["–"] * 4
    gains = [cell.value for cell in table.rows[0][4:]]
    assert gains == [pytest.approx(1.0), pytest.approx(5.0)]  # the worlds are the same, so they cancel
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


def test_the_time_table_has_a_mean_only_where_every_environment_has_a_value():
    n = len(evidence_page.TIMES)
    scores = {
        "chain": {"beb": [0.5] * n, "dss-pi": [np.nan] * 6 + [0.9] * (n - 6)},
        "grid5": {"beb": [0.7] * n, "dss-pi": [0.7] * n},
        "deep_sea": {"beb": [0.1] * n},  # not tried by all, so not in the mean
    }
    table = evidence_page.time_table(scores)
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert rows == {"beb": ["0.600"] * 5, "dss-pi": ["–", "–", "–", "0.800", "0.800"]}
    assert "over 2 environments" in table.title
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
    assert [(row[0].text, row[1].value) for row in table.rows] == [("rmax", 1.0), ("thompson", 3.0)]


def test_a_study_without_exported_runs_has_a_line():
    parts = evidence_page.page_parts({}, {})
    assert set(parts) == {"families", "second", "seas", "single", "time"}
    assert all("has been exported yet" in part for part in parts.values())
