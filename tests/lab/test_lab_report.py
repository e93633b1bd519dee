"""The report: one page that needs nothing but itself, and files beside it."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser

import pytest
from lab_samples import CEILINGS, learner, sample, study, tuning

from bamdp.lab import report
from bamdp.lab.report import inline_svg
from bamdp.lab.results import Provenance, Results

VOID = {"meta", "br", "img", "link", "hr", "input"}
PROVENANCE = Provenance(
    {"bamdp": "9.9.9", "machine": "a <small> one"},
    ("bamdp lab run a.toml", "bamdp lab report a.toml"),
    "[study]\nx = 1",
)


class Page(HTMLParser):
    """Ids, references, scripts, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.words, self.rows = [], [], [], [], 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        held = dict(attributes)
        self.rows += tag == "tr"
        self.ids += [held["id"]] if "id" in held else []
        self.links += [held[key] for key in ("href", "src", "xlink:href") if key in held]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def small(quick=False):
    """As a study, but quick to draw."""
    samples = [learner("chain", "dss-pi", runs=5), learner("chain", "thompson", runs=5)]
    tuned = [s for s in tuning("chain", "dss-pi") if s.configuration["prior.beta"] == 6.0]
    broken = sample([], "grid5", "sboss", failures=("run 0: <b>ValueError</b> & co",))
    return Results("Small & <quick>", (*tuned, *samples, broken), CEILINGS, quick, ("A note.",))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, report.write_report(small(quick=True), folder, provenance=PROVENANCE)


@pytest.fixture(scope="module")
def page(written):
    return Page(written[1][0].read_text(encoding="utf-8"))


def test_the_page_is_first_and_every_file_is_there(written):
    folder, paths = written
    assert paths[0] == folder / "index.html"
    assert len(set(paths)) == len(paths)
    assert all(path.stat().st_size for path in paths)
    there = {path for path in folder.rglob("*") if path.is_file()}
    assert there == set(paths)
    assert {path.suffix for path in paths} == {".html", ".md", ".csv", ".tex", ".png", ".svg", ".pdf"}


def test_the_page_is_well_formed_with_ids_that_are_used_once(page):
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))


def test_the_page_asks_for_nothing_from_outside(written, page):
    folder, paths = written
    text = paths[0].read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    for link in page.links:
        assert link.startswith(("#", "data:")) or (folder / link).is_file(), link
    addresses = set(re.findall(r"https?://[^\s\"')]+", text))
    assert addresses <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}  # names, never fetched
    assert not re.search(r"@import|<link|<iframe|fetch\(|XMLHttpRequest", text)


def test_every_reference_inside_a_figure_has_its_target(page):
    inside = [link[1:] for link in page.links if link.startswith("#")]
    assert set(inside) <= set(page.ids)


@pytest.mark.parametrize(
    "words",
    [
        "Small & <quick>",
        "Quick run",
        "A note.",
        "9.9.9",
        "a <small> one",
        "bamdp lab run a.toml",
        "x = 1",
        "<b>ValueError</b> & co",
        "all 1 failed",
        "Chosen in tuning",
        "How to read it",
    ],
)
def test_the_page_says(page, words):
    assert words in page.text


def test_what_was_not_drawn_is_not_promised(tmp_path):
    only = Results("t", (sample([1.0, 2.0]),), {})
    paths = report.write_report(only, tmp_path, formats=("csv",))
    assert not any(path.suffix == ".svg" for path in tmp_path.rglob("*"))
    page = Page(paths[0].read_text(encoding="utf-8"))
    assert "No run failed" in page.text
    assert "regret" not in page.text
    assert "Tuning" not in page.text


def test_a_study_with_nothing_but_tuning_has_a_report(tmp_path):
    paths = report.write_report(
        Results("t", tuple(tuning("chain", "dss-pi")), CEILINGS), tmp_path, formats=()
    )
    page = Page(paths[0].read_text(encoding="utf-8"))
    assert "Chosen in tuning" in page.text
    assert "Total reward, mean" not in page.text


def test_a_study_without_any_run_has_a_report(tmp_path):
    failed = sample([], failures=("run 0: it broke",))
    for held in (Results("t", (), {}), Results("t", (failed,), CEILINGS)):
        assert Page(report.write_report(held, tmp_path)[0].read_text(encoding="utf-8")).open == []


def test_unknown_formats_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="formats are md, csv, tex, png, svg, pdf; got bmp"):
        report.write_report(small(), tmp_path, formats=("md", "bmp"))
    assert not list(tmp_path.iterdir())


def test_a_report_made_twice_is_the_same(written, tmp_path):
    folder, paths = written
    again = report.write_report(small(quick=True), tmp_path, provenance=PROVENANCE)
    assert [p.relative_to(tmp_path) for p in again] == [p.relative_to(folder) for p in paths]
    for first, second in zip(paths, again):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_a_later_report_leaves_nothing_of_an_earlier_one_that_it_does_not_have(tmp_path):
    own = tmp_path / "tables" / "mine.md"
    failed = sample([], failures=("run 0: it broke",))
    earlier = report.write_report(Results("t", (sample([1.0, 2.0]), failed), {}), tmp_path, formats=("md",))
    assert tmp_path / "tables" / "troubles.md" in earlier
    own.write_text("kept")
    later = report.write_report(Results("t", (sample([1.0, 2.0]),), {}), tmp_path, formats=("md",))
    assert set(tmp_path.rglob("*.*")) == {*later, own}


def test_tables_beside_the_page_hold_its_numbers(written):
    folder, _ = written
    text = (folder / "tables" / "rewards.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    expected = learner("chain", "thompson", runs=5).totals.mean()
    assert float(next(row["chain"] for row in rows if row["algorithm"] == "thompson")) == expected


def test_a_figure_in_the_page_wears_its_colours_and_names_of_its_own():
    drawn = inline_svg(
        '<?xml version="1.0"?>\n<svg width="9pt" viewBox="0 0 9 9"><metadata>x</metadata><path id="a" '
        'style="fill: #FFFFFF; stroke: #222222"/><use xlink:href="#a" clip-path="url(#a)"/></svg>',
        "fig",
        'about "it"',
    )
    assert 'id="fig-a"' in drawn
    assert 'xlink:href="#fig-a" clip-path="url(#fig-a)"' in drawn
    assert "fill: var(--paper); stroke: var(--ink)" in drawn
    assert 'role="img" aria-label="about &quot;it&quot;"' in drawn
    assert "metadata" not in drawn


@pytest.mark.slow
def test_the_report_of_a_larger_study_is_well_formed(tmp_path):
    paths = report.write_report(study(), tmp_path, provenance=PROVENANCE)
    page = Page(paths[0].read_text(encoding="utf-8"))
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert "3 of 20 runs failed" in page.text
