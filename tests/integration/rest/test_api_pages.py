"""docs/rest.md tells of every route that there is, and of no other."""

from __future__ import annotations

import re

from api_builders import Served
from rest_page import PAGE, called, rights_on_the_page

from api.http.problems import INVALID, PROBLEMS

BY_THEMSELVES = {"HEAD", "OPTIONS"}
"""Methods that Flask adds to routes."""


def test_every_route_is_on_the_page_and_the_other_way_round(served: Served) -> None:
    """Method and path; a part that a client fills in has one name on the page."""
    routes = {
        (method, called(rule))
        for rule in served.app.url_map.iter_rules()
        for method in (rule.methods or set()) - BY_THEMSELVES
    }

    assert rights_on_the_page().keys() == routes
    assert len(routes) > 10


def test_every_kind_of_error_is_on_the_page() -> None:
    """Programs go by these names."""
    listed = re.findall(r"`([a-z-]+)`(?: \((\d+)\))?", PAGE[PAGE.index("`invalid-content`, ") :])
    listed = listed[: len(PROBLEMS) + 1]

    assert [name for name, _ in listed] == [INVALID.name, *(p.name for p in PROBLEMS.values())]
    assert [int(status) for _, status in listed if status] == list(PROBLEMS)


def test_the_text_names_no_other_route() -> None:
    """What stands between the tables, too: `PUT /{so}` and the like."""
    table = re.findall(r"^\| (`[A-Z]+ /.*?) \|", PAGE, re.MULTILINE)
    verbs = "GET|PUT|POST|DELETE|PATCH"
    named = set(re.findall(rf"`((?:{verbs}) /[^`?]*)`", PAGE))

    assert named <= {each for cell in table for each in re.findall(r"`([^`]*)`", cell)}
