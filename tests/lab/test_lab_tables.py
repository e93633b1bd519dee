"""Tables say what they leave out, mix nothing, and read the same in every form."""

from __future__ import annotations

import csv
import doctest
import io
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from lab_samples import CEILINGS, learner, sample, study
from rich.console import Console

from bamdp.lab import comparisons
from bamdp.lab.results import Results
from bamdp.lab.tables import evaluation, table, tuning
from bamdp.lab.tables.table import ResultTable, TableCell


@pytest.fixture(scope="module")
def results():
    return study()


@pytest.mark.parametrize("module", [table, comparisons])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def read_csv(made):
    return list(csv.DictReader(io.StringIO(table.to_csv(made))))


def printed(made, width=200):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(table.to_rich(made))
    return console.file.getvalue()


def everything(results):
    yield from (
        evaluation.matrix(results),
        evaluation.processor_times(results),
        evaluation.overall(results),
        evaluation.all_pairs(results),
    )
    yield from (tuning.choices(results), tuning.parameters(results), tuning.troubles(results))
    for environment in results.environments:
        yield from evaluation.summaries(results, environment)
        yield from evaluation.against_best(results, environment)
    yield tuning.tried_configurations(results, "grid5", "dss-pi")


def test_the_matrix_holds_means_and_standard_errors(results):
    rows = {row["algorithm"]: row for row in read_csv(evaluation.matrix(results))}
    for s in results.select("evaluate", "chain"):
        assert float(rows[s.algorithm]["chain"]) == s.totals.mean()
        expected = s.totals.std(ddof=1) / np.sqrt(s.runs)
        assert float(rows[s.algorithm]["chain standard error"]) == pytest.approx(expected)
    assert float(rows["optimum, model known"]["grid5"]) == CEILINGS["grid5"].optimum


def test_the_best_is_bold_and_those_not_distinguishable_are_marked(results):
    rows = {row[0].text: row for row in evaluation.matrix(results).rows}
    bold = {name for name, row in rows.items() if row[2].bold}
    near = {name for name, row in rows.items() if row[2].text.endswith("≈")}
    assert (bold, near) == ({"dss-pi"}, {"dss-rtdp"})


def test_failed_runs_are_said_in_every_table_they_belong_to(results):
    for made in (
        evaluation.matrix(results),
        *evaluation.summaries(results, "grid5"),
        evaluation.processor_times(results),
    ):
        assert "grid5, bamcp: 3 of 20 runs failed (run 0: MemoryError" in " ".join(made.notes)
    assert "17 (3 failed)" in printed(evaluation.summaries(results, "grid5")[0])
    assert "20 × ValueError: no such row" in printed(tuning.troubles(results))
    last = next(row for row in evaluation.matrix(results).rows if row[0].text == "sboss")
    assert last[3] == TableCell("all 20 failed")
    assert [row["failed"] for row in read_csv(tuning.troubles(results)) if row["phase"] == "evaluate"] == [
        "3",
        "20",
    ]


def test_exclusions_are_said(results):
    assert "over the limit of 1000" in printed(tuning.tried_configurations(results, "grid5", "dss-pi"))
    tuned = [replace(s, excluded="too slow", chosen=False) for s in results.select("tune", "chain", "dss-pi")]
    kept = [s for s in results.samples if (s.environment, s.algorithm) != ("chain", "dss-pi")]
    held = Results("t", (*tuned, *kept), CEILINGS)
    row = next(row for row in evaluation.matrix(held).rows if row[0].text == "dss-pi")
    assert row[1] == TableCell("excluded")
    assert "none: all that were left were excluded" in printed(tuning.choices(held))
    waiting = {("chain", "dss-pi"): "not complete"}
    assert "none yet" in printed(tuning.choices(replace(held, waiting=waiting)))


def test_quick_results_are_marked_in_every_table_and_form():
    for made in everything(study(quick=True)):
        assert "Quick run" in printed(made)
        assert all("not results" in form(made) for form in table.TABLE_WRITERS.values()), made.name


def test_runs_of_different_length_are_in_different_columns_and_tables():
    long, short = learner("chain", "dss-pi"), learner("chain", "thompson", horizon=300)
    held = Results("t", (long, short), CEILINGS)
    matrix = evaluation.matrix(held)
    assert matrix.header == ("algorithm", "chain, T=1000", "chain, T=300")
    assert [cell.text for cell in matrix.rows[0][2:]] == ["–"]
    assert [cell.text for cell in matrix.rows[1][1:2]] == ["–"]
    assert matrix.rows[2][2].text == "–"  # no optimum over 300 steps is known
    assert [made.name for made in evaluation.summaries(held, "chain")] == [
        "summary_chain_T1000",
        "summary_chain_T300",
    ]
    assert not evaluation.all_pairs(held).rows
    assert evaluation.overall(held) is None


def test_too_few_runs_to_tell_anything_apart_is_said():
    few = Results("t", (sample([1.0, 2.0, 3.0]), sample([7.0, 8.0, 9.0], algorithm="b")), CEILINGS)
    assert "too few common runs" in " ".join(evaluation.matrix(few).notes)
    assert "too narrow" in " ".join(evaluation.summaries(few, "chain")[0].notes)
    many = Results("t", (sample(np.arange(12.0)), sample(np.arange(12.0) + 5, algorithm="b")), CEILINGS)
    assert "too few common runs" not in " ".join(evaluation.matrix(many).notes)
    assert "too narrow" not in " ".join(evaluation.summaries(many, "chain")[0].notes)


def test_an_algorithm_that_misses_an_environment_gets_no_overall_score(results):
    rows = {row[0].text: row for row in evaluation.overall(results).rows}
    assert (rows["sboss"][1].text, rows["sboss"][4].text) == ("–", "2 of 3")
    assert 0.0 < rows["dss-pi"][1].value < 1.0
    ranked = [float(row[3].text) for row in rows.values() if row[1].value is not None]
    assert np.mean(ranked) == (len(ranked) + 1) / 2  # ranks are among those that have a score


def test_a_score_of_zero_stands_above_none_and_below_any_positive_one():
    def played(name, score, environments=("chain", "grid5")):
        for env in environments:
            known = CEILINGS[env]
            yield sample([known.random + score * (known.optimum - known.random)] * 2, env, name)

    held = [
        *played("lazy", 0.0),
        *played("absent", 0.9, ["chain"]),
        *played("good", 0.5),
        *played("bad", -0.5),
    ]
    made = evaluation.overall(Results("t", tuple(held), CEILINGS))
    assert [row[0].text for row in made.rows] == ["good", "lazy", "bad", "absent"]
    assert made.rows[0][1].value == pytest.approx(0.5)


def test_the_best_is_compared_with_each_of_the_others_from_its_side(results):
    (made,) = evaluation.against_best(results, "grid5")
    assert {row[0].text for row in made.rows} == {"dss-pi"}
    assert all(row[3].value > 0.0 for row in made.rows)
    assert len(evaluation.all_pairs(results).rows) == 3 * 10


def test_the_chosen_configuration_stands_first_with_what_was_the_same(results):
    made = tuning.tried_configurations(results, "grid5", "dss-pi")
    assert made.header[:3] == ("n_policies", "n_steps", "prior.beta")
    assert [cell.text for cell in made.rows[0][:3]] == ["8", "50", "6"]
    assert "The same in all: prior=sparse." in made.notes


def test_means_over_different_steps_in_tuning_come_with_a_caution(results):
    caution = "not comparable"
    assert caution not in " ".join(tuning.tried_configurations(results, "grid5", "dss-pi").notes)
    tuned = [
        sample([k], phase="tune", horizon=steps, configuration={"k": k}) for k, steps in ((1, 100), (2, 1000))
    ]
    made = tuning.tried_configurations(Results("t", tuple(tuned), {}), "chain", "a")
    assert caution in " ".join(made.notes)
    assert [row[1].text for row in made.rows] == ["1000", "100"]


def test_studies_without_runs_or_with_one_run_make_tables():
    for totals in ([], [3.0]):
        held = Results("t", (sample(totals), sample(totals, algorithm="b")), {})
        for made in (
            evaluation.matrix(held),
            *evaluation.summaries(held, "chain"),
            evaluation.processor_times(held),
        ):
            assert len(made.rows) == 2
            assert all(form(made) for form in table.TABLE_WRITERS.values())
    assert evaluation.matrix(Results("empty", (), {})).rows == ()


NASTY = ResultTable(
    "n",
    "50% of $x_1$ & <b>",
    ("a|b", "c_d"),
    ((TableCell("*x* \\ ^~#{}"), TableCell("−1 ± 2 ≈ – π")),),
    "lr",
    ("<i>",),
)


def test_latex_has_no_special_character_left_and_balanced_braces():
    made = table.to_latex(NASTY)
    assert r"50\% of \$x\_1\$ \& \textless{}b\textgreater{}" in made
    assert r"*x* \textbackslash{} \textasciicircum{}\textasciitilde{}\#\{\}" in made
    assert r"$-$1 $\pm$ 2 $\approx$ -- $\pi$" in made
    plain = re.sub(r"\\[{}]", "", made)
    assert plain.count("{") == plain.count("}")
    assert all(line.count("&") - line.count(r"\&") == 1 for line in made.splitlines() if line.endswith(r"\\"))


def test_html_is_well_formed_and_escaped(results):
    for made in (NASTY, *everything(results)):
        tree = ElementTree.fromstring(table.to_html(made))
        assert len(tree.findall(".//tbody/tr")) == len(made.rows)
        assert tree.find("figcaption").text == made.title


def test_markdown_cells_cannot_break_the_grid(results):
    for made in (NASTY, *everything(results)):
        grid = [line for line in table.to_markdown(made).splitlines() if line.startswith("|")]
        assert len(grid) == len(made.rows) + 2
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in grid} == {len(made.header) + 1}


def test_csv_has_as_many_fields_in_every_line_and_distinct_names(results):
    for made in (NASTY, *everything(results)):
        lines = list(csv.reader(io.StringIO(table.to_csv(made))))
        assert len({len(line) for line in lines}) == 1
        assert len(set(lines[0])) == len(lines[0])


def test_terminal_text_is_not_read_as_markup():
    assert "[bold]" in printed(replace(NASTY, header=("[bold]", "x")))


def test_a_ragged_table_is_refused():
    with pytest.raises(ValueError, match="different widths"):
        ResultTable("n", "t", ("a", "b"), ((TableCell("1"),),), "ll")


def test_configurations_with_runs_of_two_lengths_are_counted_once():
    tuned = [
        sample(
            [1.0] * runs, phase="tune", horizon=horizon, configuration={"n": n}, chosen=n == 1, excluded=why
        )
        for n, runs, horizon, why in [
            (1, 2, 100, ""),
            (1, 2, 1000, ""),
            (2, 2, 100, ""),
            (3, 1, 100, "slow"),
            (3, 1, 1000, "slow"),
        ]
    ]
    held = Results("t", tuple(tuned), {})
    assert tuning.tried_configurations(held, "chain", "a").title == "chain, a: 3 configurations"
    made = tuning.choices(held)
    assert [cell.text for cell in made.rows[0][2:5]] == ["3", "1", "n=1"]
    assert not any("drawing them towards" in note for note in made.notes)
    more = sample([1.0] * 5, phase="tune", horizon=100, configuration={"n": 4})
    uneven = tuning.choices(Results("t", (*tuned, more), {}))
    assert any("drawing them towards the common one" in note for note in uneven.notes)
