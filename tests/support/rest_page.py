"""What docs/rest.md, and the pages it leads to, say of each route."""

from __future__ import annotations

import re
from pathlib import Path

from werkzeug.routing import Rule

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "\n".join(
    each.read_text(encoding="utf-8")
    for each in (DOCS / "rest.md", *sorted((DOCS / "rest").glob("*.md")))
)
NAMES = {
    "service_object": "so",
    "stream": "s",
    "version": "n",
    "subscription": "id",
    "actuation": "id",
}
"""What the page calls the parts of a path; others have the name that the route gives them."""

ROWS = re.findall(r"^\| (`[A-Z]+ /.*?) \| ([a-z, ]+) \| (.*) \|$", PAGE, re.MULTILINE)
"""The table of the routes of the API; those of delivery have no rights of their own there."""

Route = tuple[str, str]
"""A method, and a path as the page writes it."""


def called(rule: Rule) -> str:
    """Return the path of a rule as the page writes it."""
    return re.sub(
        r"<(?:\w+:)?(\w+)>", lambda part: f"{{{NAMES.get(part[1], part[1])}}}", rule.rule
    )


def rights_on_the_page() -> dict[Route, str]:
    """Return the right of each route; a row with several routes has as many rights."""
    found: dict[Route, str] = {}
    for cell, rights, _answer in ROWS:
        routes = re.findall(r"`([A-Z]+) (/\S*?)`", cell)
        found.update(zip(routes, rights.split(", "), strict=True))
    return found


def statuses_on_the_page() -> dict[Route, set[int]]:
    """Return the statuses of success of each route; a row with several tells one of each."""
    found: dict[Route, set[int]] = {}
    for cell, _rights, answer in ROWS:
        routes = re.findall(r"`([A-Z]+) (/\S*?)`", cell)
        told = [int(each) for each in re.findall(r"\b(2\d\d)\b", re.sub("`.*?`", "", answer))]
        of_each = [set(told)] if len(routes) == 1 else [{each} for each in told]
        found.update(zip(routes, of_each, strict=True))
    return found
