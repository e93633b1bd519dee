"""Pieces of a self-contained HTML page: figures drawn into it, tables with their files, sections.

Nothing on the page is fetched from anywhere, and a content policy in its head sees to it. Figures are inline SVG whose
ink, paper and grid are the page's own colours, so that they follow it into the dark.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from bamdp.lab.figures.style import ALARM, COLOURS, GREY, GRID, INK, PAPER
from bamdp.lab.tables import Table, render

COLUMN = 500.0  # points; wider figures take the page's whole width
ROLES = {
    INK: "--ink",
    GREY: "--grey",
    GRID: "--grid",
    PAPER: "--paper",
    ALARM: "--warn",
    COLOURS[0]: "--blue",
}


def page(title: str, lead: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """The whole page; sections are (id, heading, HTML)."""
    contents = "".join(
        f'<li><a href="#part-{name}">{safe(heading)}</a></li>' for name, heading, _ in sections
    )
    body = "\n".join(
        f'<section id="part-{name}">\n<h2>{safe(heading)}</h2>\n{inner}\n</section>'
        for name, heading, inner in sections
    )
    return Template(_asset("report.html")).substitute(
        title=safe(title),
        style=_asset("report.css"),
        script=_asset("report.js"),
        lead=lead,
        contents=contents,
        body=body,
    )


def table_block(table: Table, written: Iterable[Path], folder: Path) -> str:
    """A table, and where its files are."""
    return render.html(table) + _links(written, folder)


def picture_block(svg: str, stem: str, caption: str, written: Iterable[Path], folder: Path) -> str:
    """A figure drawn into the page, its caption, and where its files are."""
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])  # type: ignore[index]
    kind = "picture wide" if width > COLUMN else "picture"
    drawing = inline_svg(svg, stem, caption)
    return (
        f'<figure class="{kind}" id="picture-{safe(stem)}">\n<div class="scroll">{drawing}</div>\n'
        f"<figcaption>{safe(caption)}</figcaption>\n{_links(written, folder)}</figure>\n"
    )


def linked_files(text: str) -> list[str]:
    """Paths of the files of tables and figures that a page of ours links to, relative to its folder."""
    return [
        link
        for line in re.findall(r'<p class="files">Files: (.*?)</p>', text)
        for link in re.findall(r'<a href="((?:tables|figures)/[\w.-]+)">', line)
    ]


def gallery(blocks: Iterable[str]) -> str:
    """Pictures side by side where there is room."""
    inner = "\n".join(blocks)
    return f'<div class="gallery">\n{inner}\n</div>' if inner else ""


def inline_svg(text: str, prefix: str, description: str) -> str:
    """Matplotlib's SVG as a part of a page: names of its own, the page's colours, words for those who cannot see it."""
    drawing = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    drawing = re.sub(r'\bid="', f'id="{prefix}-', drawing)
    drawing = re.sub(r'((?:xlink:)?href="|url\()#', rf"\g<1>#{prefix}-", drawing)
    for colour, role in ROLES.items():
        drawing = re.sub(colour, f"var({role})", drawing, flags=re.IGNORECASE)
    drawing = re.sub(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', _opening(description), drawing, count=1)
    return drawing.strip()


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of names and what they stand for."""
    return "<dl>" + "".join(f"<dt>{safe(key)}</dt><dd>{safe(value)}</dd>" for key, value in pairs) + "</dl>"


def folded(summary: str, inner: str) -> str:
    """What is shown when asked for."""
    return f"<details><summary>{safe(summary)}</summary>\n{inner}\n</details>"


def paragraphs(words: Iterable[str], kind: str = "") -> str:
    """Each in a paragraph of its own."""
    attribute = f' class="{kind}"' if kind else ""
    return "\n".join(f"<p{attribute}>{safe(one)}</p>" for one in words)


def code(text: str) -> str:
    """To be typed or kept as it is."""
    return f"<pre>{safe(text)}</pre>"


def safe(words: object) -> str:
    """Text without markup."""
    return html.escape(str(words))


def _opening(description: str) -> str:
    words = safe(description).replace("\\", r"\\")
    return rf'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="\1" role="img" aria-label="{words}">'


def _links(written: Iterable[Path], folder: Path) -> str:
    links = [
        f'<a href="{safe(p.relative_to(folder).as_posix())}">{safe(p.suffix[1:].upper())}</a>'
        for p in written
    ]
    return f'<p class="files">Files: {", ".join(links)}</p>\n' if links else ""


def _asset(name: str) -> str:
    return files("bamdp.lab").joinpath("templates", name).read_text(encoding="utf-8")
