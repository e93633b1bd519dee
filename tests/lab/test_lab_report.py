"""Tables, figures and the report of a study that was run."""

from __future__ import annotations

import re

import pytest
from lab_fakes import group
from matplotlib.figure import Figure

from bamdp.lab import tables
from bamdp.lab.comparisons import groups
from bamdp.lab.report import LEAST_SPAN, draw_curve, draw_map, write_report
from bamdp.lab.results import collect_results
from bamdp.lab.runner import run_study
from bamdp.lab.store import TUNE, Store
from bamdp.lab.study import parse_study

STUDY = parse_study("""
title = "A <small> study"
environments = ["chain", "double_loop"]
steps = 60
runs = 6
[algorithms.thompson]
resample = ["step", 5]
"prior.beta" = [2, 6]
[algorithms.random]
[algorithms.fhts]
horizon = 6
max_hyper_states = 2
[tuning]
runs = 2
""")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("lab") / "s.sqlite") as store:
        run_study(STUDY, store)
        return collect_results(STUDY, store)


def test_a_comparison_is_one_table_with_what_differs(results):
    table = tables.comparison(groups(results)[0])
    text = str(table)
    assert list(table.frame) == ["planner", "total reward", "difference to the best", "ms/step"]
    assert text.startswith("chain: 6 runs of 60 steps, total reward ± standard error")
    assert "optimum, model known" in text
    assert "fhts is left out: 0 of 6 runs, 6 failed or were stopped" in " ".join(text.split())
    both = tables.comparison(group({"a": [1.0, 2.0], "b": [1.0, 3.0]}))
    assert "Too few common runs" in str(both)


def test_a_note_says_when_priors_differ():
    found = group({"a": [1.0, 2.0], "b": [1.0, 3.0]})
    found.runs.loc[found.runs.label == "b", "prior"] = "sparse"
    table = tables.comparison(found)
    assert "prior" in table.frame
    assert "Planners differ in prior" in table.notes[-1]
    found.runs.loc[found.runs.label == "b", "prior"] = "–"  # a planner without a prior
    assert "prior" not in tables.comparison(found).frame


def test_tuning_says_whether_its_best_is_distinguishable_from_the_next(results):
    table = tables.tried(results, "chain", "thompson")
    assert list(table.frame)[:2] == ["resample", "prior.beta"]
    assert table.frame[""].tolist() == ["chosen", "", "", ""]
    assert any(note.startswith("The best is not distinguishable from the next (") for note in table.notes)


def test_every_table_is_written_in_every_format(results, tmp_path):
    table = tables.matrix(results)
    table.write(tmp_path)
    markdown, latex = ((tmp_path / f"rewards.{ending}").read_text() for ending in ("md", "tex"))
    assert "| algorithm | chain | double_loop |" in markdown
    assert r"double\_loop" in latex
    assert (tmp_path / "rewards.csv").read_text().startswith("algorithm,chain,double_loop\n")
    assert "<table" in table.to_html()


def test_the_colours_of_a_map_do_not_exaggerate(results):
    runs = results.select(TUNE, "chain", "thompson").copy()
    runs["total"] = 100.0 + runs.replicate  # a difference of one per cent
    axes = Figure().subplots()
    draw_map(axes, runs, "resample", "prior.beta")
    low, high = axes.images[0].get_clim()
    assert high - low >= LEAST_SPAN * 100.0
    assert sum("★" in text.get_text() for text in axes.texts) == 1
    axes = Figure().subplots()
    draw_curve(axes, runs, "prior.beta")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "6"]


def test_a_report_is_one_page_that_needs_nothing_else(results, tmp_path):
    page = write_report(results, tmp_path / "report", 'title = "A <small> study"').read_text()
    assert "A &lt;small&gt; study" in page
    assert "<small> study" not in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert page.count("data:image/png;base64,") == 2 + 2
    assert {path.suffix for path in (tmp_path / "report" / "tables").rglob("*.*")} == {".md", ".tex", ".csv"}
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"index.html", "tables", "figures"}


def test_only_complete_evaluations_stand_beside_each_other(tmp_path):
    text = 'environments = ["chain"]\nsteps = 20\nruns = {}\n[algorithms.random]\n{}[algorithms.q-learning]'
    with Store(tmp_path / "s.sqlite") as store:
        run_study(parse_study(text.format(3, "at.chain.runs = 2\n")), store)
        fewer = collect_results(parse_study(text.format(3, "at.chain.runs = 2\n")), store)
        assert [list(found.values) for found in groups(fewer)] == [["q-learning"]]
        running = collect_results(parse_study(text.format(5, "")), store)
        assert [list(found.values) for found in groups(running)] == [["random", "q-learning"]]
        assert "random in chain: not complete, 3 or more runs are missing." in running.notes
        assert "Not all runs are done in chain." in tables.matrix(running).notes
