"""The site builds strictly, asks no outside host for anything, and has no broken link."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from bamdp.planners import PLANNERS

ROOT = Path(__file__).resolve().parents[2]
LOADED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("use", "href"),
}
NO_REQUEST = {"canonical", "next", "prev"}  # links that tell, and load nothing


class Page(HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        for key, value in attributes:
            if (tag, key) in LOADED and given.get("rel") not in NO_REQUEST:
                self.loads.append(value)
            elif tag == "a" and key == "href":
                self.links.append(value)


def outside(address):
    return urlsplit(address).scheme in ("http", "https") or address.startswith("//")


def faults(site):
    """Everything that is wrong with a built site, in words."""
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        found += [f"{where} loads {x} from outside" for x in page.loads if outside(x)]
        for link in page.loads + page.links:
            if not outside(link) and not link.startswith(("data:", "mailto:")):
                found += broken(site, pages, path, link)
    for path in site.rglob("*.css"):
        for link in re.findall(r"url\(['\"]?([^'\")]+)", path.read_text()):
            if outside(link):
                found.append(f"{path.relative_to(site)} loads {link} from outside")
            elif not link.startswith(("data:", "#")) and not (path.parent / link.partition("?")[0]).exists():
                found.append(f"{path.relative_to(site)} has no {link}")
    return found


def broken(site, pages, path, link):
    parts = urlsplit(link)
    base = site if parts.path.startswith("/") else path.parent
    target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return [f"{path.relative_to(site)} links to {link}, which is not there"]
    anchors = pages[target].anchors if target in pages else set()
    if parts.fragment and target in pages and unquote(parts.fragment) not in anchors | {"__top"}:
        return [f"{path.relative_to(site)} links to {link}, where there is no such place"]
    return []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site").resolve()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    # A proxy that nobody listens at: a build that asks an outside host fails.
    nowhere = {f"{name}_proxy": "http://127.0.0.1:9" for name in ("http", "https", "all")}
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", **nowhere}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_no_page_asks_outside_and_no_link_is_broken(site):
    assert len(list(site.glob("*.html"))) >= 11
    assert faults(site) == []


@pytest.mark.slow
def test_formulas_sources_and_docstrings_are_on_the_pages(site):
    names = ("theory", "paper-in-code", "api-planners", "cli")
    theory, code, api, cli = ((site / f"{name}.html").read_text() for name in names)
    assert theory.count('class="arithmatex"') > 60
    assert "assets/katex/katex.min.js" in theory
    assert "::: source" not in code
    assert "last_discount" in code
    assert 'id="bamdp.DSS"' in api
    assert ":class:`" not in api
    assert "::: help" not in cli
    assert "usage: bamdp lab run" in cli


@pytest.mark.slow
def test_every_parameter_has_its_own_default_in_the_reference(site):
    page = (site / "api-planners.html").read_text()
    entry = re.compile(
        r"<b><code>(\w+)</code></b>\s*\(<code>.*?</code>,\s*default:\s*<code>(.*?)</code>", flags=re.S
    )
    checked = 0
    for cls in {planner.cls for planner in PLANNERS.values()}:
        section = page.partition(f'id="bamdp.{cls.__name__}"')[2].partition('id="bamdp.')[0]
        defaults = {field.name: field.default for field in dataclasses.fields(cls)}
        for name, shown in entry.findall(section):
            value = re.sub(r"<[^>]+>", "", shown).replace("&#39;", "'")
            assert ast.literal_eval(value) == defaults[name], (cls, name)
            checked += 1
    assert checked > 60


def test_a_site_with_faults_is_found_out(tmp_path):
    (tmp_path / "index.html").write_text(
        '<script src="https://example.org/x.js"></script><link rel="stylesheet" href="s.css">'
        '<a href="gone.html">x</a><a href="other.html#nowhere">y</a><a href="other.html#here">z</a>'
        '<a href="https://example.org">a link that loads nothing</a>'
    )
    (tmp_path / "other.html").write_text('<p id="here">')
    (tmp_path / "s.css").write_text("@font-face { src: url(//fonts.example.org/f.woff2), url(f.woff2) }")
    assert len(faults(tmp_path.resolve())) == 5
