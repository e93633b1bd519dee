"""The generated parts of the pages on the reproduction: made of the committed runs, and equal to what is committed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import reproduction_page
from lab_samples import CEILINGS, sample
from reproduction_page import FIGURES, PAGES, Evidence, fill, marked

from bamdp.lab.results import Results

ROOT = Path(__file__).resolve().parents[2]
COMMON = np.random.default_rng(0).normal(size=40)

PAPER = {"267.63", "351.49", "47.50", "13.32"}  # Table 1
STATED = {"2020", "0.67", "408", "367", "1826", "1270"}  # a year, a range of costs, optima
MEASURED = {
    "267.9",
    "354.9",
    "236",
    "308",
    "46.6",
    "13.0",
    "60.4",
    "23.5",
    "287.6",
    "11.8",
}  # the rivals' program
COUNTED = {
    "9.8",
    "264",
    "10560",
    "5.27",
    "0.352",
}  # by how much targets were missed, and what a step has to do


def committed(page):
    return (ROOT / page).read_text(encoding="utf-8")


def outside(page):
    """What people wrote of a page."""
    return re.sub(r"<!-- begin: ([\w-]+) -->.*?<!-- end: \1 -->", "", page, flags=re.DOTALL)


@pytest.mark.slow
def test_the_committed_pages_are_what_the_committed_runs_say():
    """If this fails, runs or tables were changed: `make reproduction` writes the pages again."""
    with reproduction_page.read_evidence(ROOT / "results" / "dss2020") as evidence:
        parts = reproduction_page.page_parts(evidence)
    assert {name for page in PAGES for name in marked(committed(page))} == set(parts)
    for page in PAGES:
        assert fill(committed(page), parts) == committed(page), page
    changed = committed(PAGES[0]).replace("278.24 ± 7.80", "378.24 ± 7.80")
    assert changed != committed(PAGES[0])
    assert fill(changed, parts) == committed(PAGES[0]), "a changed number is noticed"


def test_the_pages_show_every_figure_and_every_figure_is_there():
    shown = {Path(link).stem for page in PAGES for link in re.findall(r"\]\(([^)]+\.png)\)", committed(page))}
    assert set(FIGURES) <= shown
    assert all((ROOT / "docs" / "images" / f"{stem}.png").exists() for stem in FIGURES)
    drawn = {path.stem for path in (ROOT / "docs" / "images").glob("reproduction-*.png")}
    assert drawn == {stem for stem in FIGURES if stem.startswith("reproduction-")}


def numbers(text):
    """All numbers of a text, without their signs."""
    return set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)", text.replace("**", " ")))


def test_numbers_in_the_prose_are_in_the_tables_or_the_papers_or_were_measured_before():
    page = committed(PAGES[0])
    parts = re.findall(r"<!-- begin: ([\w-]+) -->(.*?)<!-- end: \1 -->", page, flags=re.DOTALL)
    in_tables = {n for _, part in parts for n in numbers(part)}
    in_tables |= {f"{float(n):.{digits}f}" for n in in_tables for digits in (0, 1)}
    prose = re.sub(r"```.*?```|`[^`]*`", "", outside(page), flags=re.DOTALL)
    assert numbers(prose) <= in_tables | PAPER | STATED | MEASURED | COUNTED
    assert {"278.24", "1415", "0.856"} <= in_tables


def test_the_committed_exports_are_small():
    assert sum(path.stat().st_size for path in (ROOT / "results" / "dss2020").iterdir()) <= 13_000_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "nowhere"], "nowhere/published.runs.xz: No such file"),
        (["--root", "nowhere"], "No such file or directory: 'nowhere/docs/reproduction.md'"),
    ],
)
def test_what_is_missing_is_said_in_one_line(arguments, message, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert reproduction_page.main(arguments) == 2
    err = capsys.readouterr().err
    assert message.partition(":")[0] in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "<!-- begin: a -->\n",
        "<!-- end: a -->",
        "<!-- begin: a -->\n<!-- begin: b -->\n<!-- end: a -->\n<!-- end: b -->",
        "<!-- begin: a -->\n<!-- end: a -->\n<!-- begin: a -->\n<!-- end: a -->",
    ],
)
def test_marks_must_come_in_pairs(text):
    with pytest.raises(ValueError, match="in pairs"):
        fill(text, {"a": "", "b": ""})


def test_only_what_is_between_marks_is_replaced():
    text = "before\n<!-- begin: a -->\nold\n<!-- end: a -->\nafter"
    with pytest.raises(ValueError, match="'a' that is not generated; known: b"):
        fill(text, {"b": ""})
    new = fill(text, {"a": "double\\_loop \\1", "b": ""})
    assert new == "before\n<!-- begin: a -->\n\ndouble\\_loop \\1\n\n<!-- end: a -->\nafter"
    assert fill(new, {"a": "double\\_loop \\1"}) == new


# Tables that only the page has


def evaluated(environment, algorithm, mean, spread=1.0, **other):
    """Forty whole runs around a mean."""
    totals = mean + spread * (COMMON - COMMON.mean())
    return sample(totals, environment, algorithm, chosen=True, asked=40, **other)


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


@pytest.mark.parametrize(
    ("mean", "spread", "word"),
    [
        (380.0, 1.0, "met"),
        (371.0, 30.0, "met, narrowly"),
        (369.0, 30.0, "missed, narrowly"),
        (300.0, 1.0, "missed"),
    ],
)
def test_a_target_within_the_interval_is_met_or_missed_narrowly(mean, spread, word):
    worse = evaluated("chain", "dss-rtdp", 200.0)
    fair = Results("t", (evaluated("chain", "dss-pi", mean, spread), worse), CEILINGS)
    table = reproduction_page.reward_targets(fair)
    assert [row[-1].text for row in table.rows] == [word] + 4 * ["–"]
    assert [cell.bold for cell in table.rows[0]] == [False, False, True, False, False]


def test_speed_is_compared_with_table_2():
    times = {"ms_per_step": np.full(40, 0.2)}
    found = Results("t", (evaluated("grid5", "dss-pi", 70.0, **times),), CEILINGS)
    pi, rtdp = texts(reproduction_page.speed_targets(found))
    assert pi == [
        "dss-pi",
        "–",
        "–",
        "28.7",
        "–",
        "–",
        "missed",
    ]  # 5.73 s per episode of 1000 steps in the paper
    assert rtdp == ["dss-rtdp", *5 * ["–"], "missed"]


def test_dss_is_compared_with_the_best_of_the_papers_rivals():
    noise = np.random.default_rng(1).normal(size=(2, 40))
    alike = [sample(70.0 + noise[i], "grid5", name, asked=40) for i, name in enumerate(("dss-pi", "bamcp"))]
    means = {"dss-pi": 390.0, "dss-rtdp": 380.0, "sboss": 385.0, "bamcp": 200.0, "beb": 399.0}
    found = [evaluated("chain", name, mean, spread=1.0 + 0.01 * mean) for name, mean in means.items()]
    table = reproduction_page.rival_table(Results("t", (*found, *alike), CEILINGS))
    assert [(*row[:3], row[4]) for row in texts(table)] == [
        ("chain", "dss-pi", "sboss", "ahead"),
        ("grid5", "dss-pi", "bamcp", "about equal"),
    ]
    assert table.rows[0][3].value == pytest.approx(5.0)


def test_gains_stand_beside_each_other():
    before = Results("t", (evaluated("chain", "dss-pi", 300.0), evaluated("chain", "sboss", 350.0)), CEILINGS)
    after = Results("t", (evaluated("chain", "dss-pi", 310.5),), CEILINGS)
    table = reproduction_page.choice_gains(before, after)
    assert texts(table) == [["dss-pi", "300.00 → 310.50", *4 * ["–"]]]


def test_each_prior_has_the_mean_over_the_configurations_with_it():
    flat, sparse = {"prior": "flat"}, {"prior": "sparse", "prior.beta": 8}
    tried = lambda totals, configuration, environment="grid5", horizon=1000, phase="tune": sample(
        totals, environment, "dss-pi", horizon=horizon, phase=phase, configuration=configuration
    )
    samples = (
        tried([60.0], {**flat, "n_policies": 1}),
        tried([70.0, 72.0, 74.0], {**flat, "n_policies": 2}),  # counts as often as the one with a single run
        tried([80.0], sparse),
        tried([0.0], flat, phase="evaluate"),
        tried([], {**sparse, "n_policies": 4}),  # stopped before it came to an end
        tried([5.0], flat, "maze", 4000),
        tried([900.0], flat, "maze", 20000),  # only some were run so long
    )
    table = reproduction_page.prior_table(Results("t", samples))
    assert table.header == ("environment", "algorithm", "steps", "flat", "sparse, β = 8", "paper")
    assert texts(table) == [
        ["grid5", "dss-pi", "1000", "66.0 ± 6.0", "80.0", "79.01"],
        ["maze", "dss-pi", "4000", "5.00", "–", "–"],  # the paper's runs are longer
    ]
    assert [[cell.bold for cell in row[3:5]] for row in table.rows] == [[False, True], [True, False]]


def test_runs_that_sweeps_share_are_counted_once():
    same, hours = {"n_policies": 4}, lambda n: np.full(n, 3600.0)
    samples = (
        sample([1.0, 2.0], "grid5", "N", configuration=same, cpu_seconds=hours(2)),
        sample(
            [1.0, 2.0], "grid5", "leaf", configuration={**same, "leaf": "zero"}, cpu_seconds=hours(2)
        ),  # the planner's default
        sample([3.0], "grid5", "leaf", configuration={**same, "leaf": "mean"}, asked=2, cpu_seconds=hours(1)),
    )
    found = Results("t", samples, cells=(("grid5", "N"), ("grid5", "leaf")))
    table = reproduction_page.run_counts({"dss2020/ablation": found}, "a machine")
    assert texts(table) == [["dss2020/ablation", "1 of 2", "3", "3.0"]]
    assert table.notes[-1] == "a machine"


def test_an_algorithm_fits_best_with_the_prior_that_most_entries_agree_with():
    """With β = 8 both agree, with the flat prior one of two, as far as they were run."""
    published = {"chain": 351.49, "double_loop": 371.11}  # SBOSS in the paper's Table 1
    of = lambda label, environment, mean, prior: evaluated(environment, label, mean, configuration=prior)
    flat, sparse = {"prior": "flat"}, {"prior": "sparse", "prior.beta": 8}
    rows = [of("sboss", e, mean, flat) for e, mean in {"chain": 351.49, "double_loop": 200.0}.items()]
    rows += [of("sboss-8", e, mean, sparse) for e, mean in published.items()]
    empty = Results("t", (), CEILINGS)
    stated = Results("t", tuple(rows), CEILINGS)
    evidence = Evidence(
        {"dss2020/published": empty, "dss2020/stated": stated, "dss2020/ablation": empty}, "a machine"
    )
    table = reproduction_page.prior_counts(evidence)
    assert texts(table)[-1] == ["sboss", "1 of 2", "0 of 0", "2 of 2"]
    assert [cell.bold for cell in table.rows[-1]] == [False, False, False, True]
    entries = texts(reproduction_page.prior_entries(evidence))
    assert [row[-1] for row in entries] == ["agrees", "worse", "agrees", "agrees"]


def test_minutes_of_tuning_are_summed_over_configurations():
    tune = lambda name, seconds: sample(
        [1.0, 2.0], "grid5", name, phase="tune", cpu_seconds=np.full(2, seconds), configuration={"x": seconds}
    )
    samples = (tune("beb", 30.0), tune("beb", 60.0), sample([1.0], "grid5", "random"))
    made = reproduction_page.tuning_times(Results("t", samples))
    assert [[cell.text for cell in row] for row in made.rows] == [["beb", "3.00"], ["random", "–"]]
