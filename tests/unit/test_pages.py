"""The pages lead to what is there: links, anchors, decisions, files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
FOLDERS = (
    "docs",
    "docs/rest",
    "docs/how-to",
    "docs/decisions",
    "schemas",
    "sandbox",
    "deploy",
    ".",
)
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
IDS = [str(page.relative_to(ROOT)) for page in PAGES]


def links(page: Path) -> Iterator[str]:
    """The targets of its links to other files and to its own headings."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if not re.match(r"[a-z]+:", target):
            yield target


def targets(page: Path) -> list[Path]:
    """The files that it leads to."""
    return [Path(os.path.normpath(page.parent / each.partition("#")[0])) for each in links(page)]


def anchors(page: Path) -> set[str]:
    """What its headings are called in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_found_from_the_readme_and_how_to_in_one_step() -> None:
    """What nobody is led to is not there: whoever looks for back-up or plots begins there."""
    readme = ROOT / "README.md"
    found, left = set[Path](), [readme]
    while left:
        page = left.pop()
        if page not in found and page.suffix == ".md" and page.is_file():
            found.add(page)
            left += targets(page)
    from_readme = set(targets(readme))

    assert [str(each) for each in PAGES if each not in found] == []
    assert [str(e) for e in PAGES if e.parent.name == "how-to" and e not in from_readme] == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_file_of_ours_that_a_page_names_is_there(page: Path) -> None:
    """`servioticy/domain/options.py` and the like; a changelog also tells of what was."""
    rooms = "servioticy|command|demonstration|benchmarks|api|broker|pipeline|delivery|sandbox"
    rooms += "|monitoring|schemas|deploy|tests|docs"
    named = set(re.findall(rf"`((?:{rooms})/[\w./-]+)`", page.read_text("utf-8")))

    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []


def test_each_decision_has_one_number_and_a_line_in_the_index() -> None:
    titles = [
        (page.name, page.read_text("utf-8").partition("\n")[0].removeprefix("# "))
        for page in sorted(DECISIONS.glob("0*.md"))
    ]
    numbers = [name[:4] for name, _ in titles]

    assert len(set(numbers)) == len(numbers)
    assert all(title.startswith(f"{name[:4]} ") for name, title in titles)
    index = re.findall(r"^- \[(\d+)\]\((.*?)\) (.*)$", (DECISIONS / "README.md").read_text(), re.M)
    assert [(name, f"{number} {title}") for number, name, title in index] == titles
