"""The report of a study: one page that opens anywhere, offline, and its tables and figures as files beside it.

folder/
  index.html     everything, self-contained
  tables/        Markdown, CSV, LaTeX
  figures/       PNG, SVG, PDF

Nothing on the page is fetched from anywhere, which a content policy in its head enforces. Figures are inline SVG that
use the page's own colours for text, paper and grid, so that they follow it into dark mode. The page is written by the
Jinja templates in ``templates/``, in which all text is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bamdp.lab.figures import FIGURE_FORMATS, Picture, Pictures, save_figure, style
from bamdp.lab.results import EVALUATE, TUNE, Provenance, Results, comparable_results, samples_by_algorithm
from bamdp.lab.tables import evaluation, tuning
from bamdp.lab.tables.table import ResultTable, html_templates, write_table

TABLE_FORMATS = ("md", "csv", "tex")
COLUMN_WIDTH = 500.0  # points; wider figures take the page's whole width
PAGE_COLOURS = {
    style.TEXT_COLOUR: "--ink",
    style.GREY_COLOUR: "--grey",
    style.GRID_COLOUR: "--grid",
    style.PAPER_COLOUR: "--paper",
    style.WARNING_COLOUR: "--warn",
    style.COLOURS[0]: "--blue",
}
HOW_TO_READ = (
    "Means come with the standard error of the mean. Intervals are bootstrap 95% (bias-corrected and accelerated, "
    "fixed seed). IQM is the interquartile mean: the mean of the middle half of the runs.",
    "Replicates of one number have common random numbers of the environment in all algorithms, so algorithms are "
    "compared by the differences of their totals: a sign-flip test of the mean difference, Holm's correction over all "
    "pairs of an environment, 5%.",
    "The optimum is the expected total of an optimal policy of the known model over the same number of steps; the "
    "normalised score is 0 for uniformly random play and 1 for the optimum.",
)


def write_report(
    results: Results,
    folder: str | Path,
    *,
    provenance: Provenance | None = None,
    formats: Sequence[str] = (*TABLE_FORMATS, *FIGURE_FORMATS),
) -> list[Path]:
    """Write the report of a study; return the paths, the page first.

    Parameters
    ----------
    results
        The results of the study; they may be incomplete.
    folder
        Where to; it is made if needed. Files of an earlier report there are overwritten, or removed if this one
        has no such table or figure.
    provenance
        Where the results come from.
    formats
        Of the files beside the page: of tables "md", "csv", "tex", of figures "png", "svg", "pdf".
    """
    unknown = set(formats) - {*TABLE_FORMATS, *FIGURE_FORMATS}
    if unknown:
        raise ValueError(
            f"formats are {', '.join((*TABLE_FORMATS, *FIGURE_FORMATS))}; got {', '.join(sorted(unknown))}"
        )
    return _ReportWriter(results, Path(folder), provenance or Provenance(), formats).write()


@dataclass(frozen=True)
class Block:
    """A piece of the page; the template of its kind (``templates/blocks.html``) writes it."""

    kind: str
    content: object
    files: tuple[Path, ...] = ()  # to link to, relative to the page


class _ReportWriter:
    """Builds the page section by section, and writes the files of tables and figures as it goes."""

    def __init__(
        self, results: Results, folder: Path, provenance: Provenance, formats: Sequence[str]
    ) -> None:
        self.results, self.folder, self.provenance = results, folder, provenance
        self.table_formats = [ending for ending in formats if ending in TABLE_FORMATS]
        self.figure_formats = [ending for ending in formats if ending in FIGURE_FORMATS]
        self.comparable = comparable_results(results)  # what may stand in one column
        self.pictures = Pictures(self.comparable)
        self.written: list[Path] = []

    def write(self) -> list[Path]:
        sections = [section for section in self.sections() if section[-1]]
        path = self.folder / "index.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.remove_stale(path)
        runs = sum(sample.runs for sample in self.results.samples)
        n_algorithms, n_environments = len(self.results.algorithms), len(self.results.environments)
        summary = f"{n_algorithms} algorithms, {n_environments} environments, {runs} runs."
        page = html_templates().get_template("report.html")
        path.write_text(
            page.render(results=self.results, sections=sections, summary=summary), encoding="utf-8"
        )
        return [path, *self.written]

    def remove_stale(self, earlier: Path) -> None:
        """Remove files that the earlier page links to and this one does not have: they show earlier results."""
        if earlier.exists():
            linked = {self.folder / name for name in linked_files(earlier.read_text(encoding="utf-8"))}
            for path in linked - set(self.written):
                path.unlink(missing_ok=True)

    def sections(self) -> Iterator[tuple[str, str, list[Block]]]:
        """Yield the parts of the page: its id, its heading, and its blocks."""
        results = self.results
        evaluated = bool(results.select(EVALUATE))
        yield "results", "Results", list(self.overview()) if evaluated else []
        for number, environment in enumerate(results.environments):
            yield f"environment-{number}", environment, list(self.environment(environment))
        yield "tuning", "Tuning", list(self.tuning()) if results.select(TUNE) else []
        troubles = tuning.troubles(results)
        none_failed = Block("paragraphs", ["No run failed, and no configuration was excluded."])
        yield "troubles", "Failed and excluded", [self.table(troubles) if troubles.rows else none_failed]
        setup = [tuning.environments(results)] + ([tuning.parameters(results)] if evaluated else [])
        yield "setup", "What was run", [*map(self.table, setup), Block("facts", self.provenance.facts)]
        yield "reproduce", "How to get it again", list(self.reproduce())
        yield "reading", "How to read it", [Block("paragraphs", HOW_TO_READ)]

    def overview(self) -> Iterator[Block]:
        results = self.comparable
        overall = evaluation.overall(results)
        yield self.table(evaluation.matrix(results))
        yield from map(self.table, evaluation.unfinished(self.results))
        if overall:
            yield self.table(overall)
        yield self.table(evaluation.processor_times(results))
        self.table_files(evaluation.all_pairs(results))  # a file only
        yield from self.gallery(self.pictures.overview())

    def environment(self, environment: str) -> Iterator[Block]:
        yield from map(self.table, evaluation.summaries(self.comparable, environment))
        yield from map(self.table, evaluation.episodes(self.comparable, environment))
        yield from map(self.table, evaluation.against_best(self.comparable, environment))
        yield from self.gallery(self.pictures.environment(environment))

    def tuning(self) -> Iterator[Block]:
        results = self.results
        yield self.table(tuning.choices(results))
        for environment in results.environments:
            algorithms = samples_by_algorithm(results.select(TUNE, environment))
            if algorithms:
                tried = [tuning.tried_configurations(results, environment, name) for name in algorithms]
                inner = [*self.gallery(self.pictures.tuning(environment)), *map(self.table, tried)]
                yield Block("folded", {"summary": f"{environment}: every configuration", "blocks": inner})

    def reproduce(self) -> Iterator[Block]:
        if self.provenance.commands:
            yield Block("code", "\n".join(self.provenance.commands))
        if self.provenance.study:
            source = [Block("code", self.provenance.study)]
            yield Block("folded", {"summary": "The study's file", "blocks": source})

    def table(self, table: ResultTable) -> Block:
        return Block("table", table, self.relative(self.table_files(table)))

    def table_files(self, table: ResultTable) -> list[Path]:
        """Write a table in every format; return the paths."""
        paths = write_table(table, self.folder / "tables", self.table_formats)
        self.written += paths
        return paths

    def gallery(self, pictures: Iterable[Picture]) -> Iterator[Block]:
        """Yield pictures side by side where there is room; nothing if there are none."""
        blocks = [self.picture(picture) for picture in pictures]
        if blocks:
            yield Block("gallery", blocks)

    def picture(self, picture: Picture) -> Block:
        """Draw a figure, write its files, and make it a part of the page."""
        stem = self.folder / "figures" / picture.stem
        paths = save_figure(picture.draw(), stem, dict.fromkeys([*self.figure_formats, "svg"]))
        drawing = next(path for path in paths if path.suffix == ".svg")
        svg = drawing.read_text(encoding="utf-8")
        if "svg" not in self.figure_formats:
            drawing.unlink()
            paths.remove(drawing)
        self.written += paths
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])  # type: ignore[index]
        inline = inline_svg(svg, picture.stem, picture.caption)
        content = {"picture": picture, "svg": inline, "wide": width > COLUMN_WIDTH}
        return Block("picture", content, self.relative(paths))

    def relative(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        return tuple(path.relative_to(self.folder) for path in paths)


def linked_files(page: str) -> list[str]:
    """Return the paths of the files of tables and figures that a report's page links to, relative to its folder."""
    return [
        link
        for line in re.findall(r'<p class="files">Files: (.*?)</p>', page)
        for link in re.findall(r'<a href="((?:tables|figures)/[\w.-]+)">', line)
    ]


def inline_svg(svg: str, prefix: str, description: str) -> str:
    """Return Matplotlib's SVG as a part of a page: ids with a prefix, the page's colours, a description in words."""
    drawing = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    drawing = re.sub(r'\bid="', f'id="{prefix}-', drawing)
    drawing = re.sub(r'((?:xlink:)?href="|url\()#', rf"\g<1>#{prefix}-", drawing)
    for colour, variable in PAGE_COLOURS.items():
        drawing = re.sub(colour, f"var({variable})", drawing, flags=re.IGNORECASE)
    words = html.escape(description).replace("\\", r"\\")
    opening = (
        rf'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="\1" role="img" aria-label="{words}">'
    )
    return re.sub(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', opening, drawing, count=1).strip()
