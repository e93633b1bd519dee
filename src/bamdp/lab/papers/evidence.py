"""What the page is made of: the results of the paper's studies as exported files have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bamdp.lab.collect import collect_results
from bamdp.lab.comparisons import Group, groups
from bamdp.lab.papers import printed
from bamdp.lab.papers.exports import file_name, files_of, is_empty, opened
from bamdp.lab.papers.library import STUDIES, paper_study
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample, complete_results, merge_results
from bamdp.lab.store import Store


@dataclass(frozen=True, eq=False)
class Evidence:
    """Results by study's name; studies of which no run is there are left out."""

    studies: Mapping[str, Results]
    source: str  # versions and machines, as a sentence

    @cached_property
    def published(self) -> Results | None:
        """Appendix C's parameters; complete rows only."""
        return self._complete("dss2020/published")

    @cached_property
    def fair(self) -> Results | None:
        """The same chances for everybody, and the single choice's row; complete rows only."""
        return self._complete("dss2020/fair", "dss2020/single")

    @cached_property
    def ablation(self) -> Results | None:
        """DSS around Appendix C's values."""
        return self._complete("dss2020/ablation")

    def whole(self, *names: str) -> Results | None:
        """Studies as they are, also what is not complete; None without any run."""
        held = [self.studies[name] for name in names if name in self.studies]
        return merge_results(held) if held else None

    def _complete(self, *names: str) -> Results | None:
        found = self.whole(*names)
        kept = None if found is None else complete_results(found)
        return kept if kept is not None and kept.select(EVALUATE) else None


@contextmanager
def gathered(paths: Sequence[str | Path], *, quick: bool = False) -> Iterator[Evidence]:
    """The evidence in these files and folders, for as long as the block lasts: figures read every step's reward.

    A folder may be empty: then nothing has been run yet. Studies share runs, so what a file of one study happens to
    have of another is not taken for that one having been run: files are of the study that they are named after, if any.
    """
    held = [Path(path) for path in paths if not is_empty(Path(path))]
    with opened(held) as exports:
        found = {
            name: collect_results(paper_study(name, quick=quick), exports.of(name))
            for name in named_after(held)
        }
        yield Evidence(
            {name: held for name, held in found.items() if held.samples}, _source(exports.together)
        )


def named_after(paths: Sequence[Path]) -> list[str]:
    """The studies that files are named after; all of them where no file is."""
    names = {file.name for path in paths for file in files_of(path)}
    return [study for study in STUDIES if file_name(study) in names] or list(STUDIES)


def _source(store: Store) -> str:
    """By which versions and on which machines the runs were done."""
    records = store.all_records()
    machines = {
        f"{m['processor']}, {m['cores']} cores, Python {m['python']}, NumPy {m['numpy']}, Numba {m['numba']}"
        for m in store.machines(record.id for record in records)
    }
    versions = ", ".join(sorted({record.version for record in records}))
    return f"Run by bamdp {versions} on {'; '.join(sorted(machines))}." if records else ""


def sample_of(results: Results | None, environment: str, algorithm: str) -> Sample | None:
    """The one evaluation of an algorithm in an environment over the paper's steps, if it is there."""
    found = () if results is None else results.select(EVALUATE, environment, algorithm)
    held = [sample for sample in found if sample.runs and sample.horizon == printed.steps(environment)]
    return held[0] if len(held) == 1 else None


def columns(results: Results | None) -> tuple[Group, ...]:
    """The groups with runs."""
    return () if results is None else tuple(g for g in groups(results) if any(s.runs for s in g.samples))


def tuned(results: Results | None) -> bool:
    """Whether anything was chosen in it."""
    return results is not None and bool(results.select(TUNE))
