"""A study as one page that opens anywhere, offline, and its tables and figures as files beside it.

folder/
  index.html     everything, self-contained
  tables/        Markdown, CSV, LaTeX
  figures/       PNG, SVG, PDF
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bamdp.lab import page, tables
from bamdp.lab.completeness import comparable, unfinished
from bamdp.lab.figures import FORMATS as FIGURE_FORMATS
from bamdp.lab.figures import save
from bamdp.lab.pictures import Picture, Pictures
from bamdp.lab.results import EVALUATE, TUNE, Provenance, Results
from bamdp.lab.tables import Table
from bamdp.lab.tables.notes import remarks, warning

TABLE_FORMATS = ("md", "csv", "tex")
READING = (
    "Means come with the standard error of the mean. Intervals are bootstrap 95% (bias-corrected and accelerated, "
    "fixed seed). IQM is the interquartile mean: the mean of the middle half of the runs.",
    "Replicates of one number met the same luck of the environment in all algorithms, so algorithms are compared by "
    "the differences of their totals: a sign-flip test of the mean difference, Holm's correction over all pairs of an "
    "environment, 5%.",
    "The optimum is what one who knows the model gets over the same number of steps; the normalised score is 0 for "
    "uniformly random play and 1 for the optimum.",
)


def write(
    results: Results,
    folder: str | Path,
    *,
    provenance: Provenance | None = None,
    formats: Sequence[str] = (*TABLE_FORMATS, *FIGURE_FORMATS),
) -> list[Path]:
    """Write the report of a study; returns the paths, the page first.

    Parameters
    ----------
    results
        What the study came to; it may be incomplete.
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
    return _Writer(results, Path(folder), provenance or Provenance(), formats).write()


class _Writer:
    """Builds the page section by section, and writes files as it goes."""

    def __init__(
        self, results: Results, folder: Path, provenance: Provenance, formats: Sequence[str]
    ) -> None:
        self.results, self.folder, self.provenance = results, folder, provenance
        self.table_formats = [ending for ending in formats if ending in TABLE_FORMATS]
        self.figure_formats = [ending for ending in formats if ending in FIGURE_FORMATS]
        self.shown = comparable(results)  # what stands in one column
        self.pictures = Pictures(self.shown)
        self.written: list[Path] = []

    def write(self) -> list[Path]:
        sections = [section for section in self.sections() if section[2]]
        path = self.folder / "index.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.clear(path)
        path.write_text(page.page(self.results.title, self.lead(), sections), encoding="utf-8")
        return [path, *self.written]

    def clear(self, earlier: Path) -> None:
        """Remove what the earlier page links to and this one does not have: it would tell of what was."""
        if earlier.exists():
            linked = {self.folder / name for name in page.linked_files(earlier.read_text(encoding="utf-8"))}
            for path in linked - set(self.written):
                path.unlink(missing_ok=True)

    def sections(self) -> Iterator[tuple[str, str, str]]:
        """(id, heading, HTML)."""
        results = self.results
        evaluated, tuned = results.select(EVALUATE), results.select(TUNE)
        yield "results", "Results", self.overview() if evaluated else ""
        for number, environment in enumerate(results.environments):
            yield f"environment-{number}", environment, self.environment(environment)
        yield "tuning", "Tuning", self.tuning() if tuned else ""
        trouble = tables.troubles(results)
        yield "troubles", "Failed and excluded", self.tables([trouble]) if trouble.rows else page.paragraphs(
            ["No run failed, and no configuration was excluded."]
        )  # fmt: skip
        setup = [tables.environments(results)] + ([tables.parameters(results)] if evaluated else [])
        yield "setup", "What was run", self.tables(setup) + page.facts(self.provenance.facts.items())
        yield "reproduce", "How to get it again", self.reproduce()
        yield "reading", "How to read it", page.paragraphs(READING)

    def lead(self) -> str:
        results = self.results
        warned = page.paragraphs([warning(results)], "warning") if results.quick else ""
        runs = sum(sample.runs for sample in results.samples)
        said = f"{len(results.algorithms)} algorithms, {len(results.environments)} environments, {runs} runs."
        return warned + page.paragraphs([said, *remarks(results)])

    def overview(self) -> str:
        results = self.shown
        overall = tables.overall(results)
        shown = [
            tables.matrix(results),
            *unfinished(self.results),
            *([overall] if overall else []),
            tables.times(results),
        ]
        self.files(tables.all_pairs(results))
        return self.tables(shown) + self.draw(self.pictures.overview())

    def environment(self, environment: str) -> str:
        results = self.shown
        shown = [*tables.summaries(results, environment), *tables.against_best(results, environment)]
        return self.tables(shown) + self.draw(self.pictures.environment(environment))

    def tuning(self) -> str:
        results = self.results
        parts = [self.tables([tables.choices(results)])]
        for environment in results.environments:
            tuned = results.select(TUNE, environment)
            shown = [
                tables.configurations(results, environment, a)
                for a in dict.fromkeys(s.algorithm for s in tuned)
            ]
            if shown:
                inner = self.draw(self.pictures.tuning(environment)) + self.tables(shown)
                parts.append(page.folded(f"{environment}: every configuration", inner))
        return "\n".join(parts)

    def reproduce(self) -> str:
        commands = page.code("\n".join(self.provenance.commands)) if self.provenance.commands else ""
        study = (
            page.folded("The study's file", page.code(self.provenance.study)) if self.provenance.study else ""
        )
        return commands + study

    def tables(self, shown: Iterable[Table]) -> str:
        return "\n".join(page.table_block(table, self.files(table), self.folder) for table in shown)

    def files(self, table: Table) -> list[Path]:
        """Write a table in every form; returns where."""
        paths = [self.folder / "tables" / f"{table.name}.{ending}" for ending in self.table_formats]
        for path, ending in zip(paths, self.table_formats):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(tables.FORMATS[ending](table), encoding="utf-8")
        self.written += paths
        return paths

    def draw(self, pictures: Iterable[Picture]) -> str:
        return page.gallery(self.picture(picture) for picture in pictures)

    def picture(self, picture: Picture) -> str:
        """Draw a figure, write its files, and put it into the page."""
        stem = self.folder / "figures" / picture.stem
        figure = picture.draw()
        paths = save(figure, stem, dict.fromkeys([*self.figure_formats, "svg"]))
        drawing = next(path for path in paths if path.suffix == ".svg")
        text = drawing.read_text(encoding="utf-8")
        if "svg" not in self.figure_formats:
            drawing.unlink()
            paths.remove(drawing)
        self.written += paths
        return page.picture_block(text, picture.stem, picture.caption, paths, self.folder)
