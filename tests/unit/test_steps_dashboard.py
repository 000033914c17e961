"""The dashboard of measured steps: its form is Grafana's, and it asks Postgres alone."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

from grafana_foundation_sdk.models.dashboard import Dashboard

FILE = Path(__file__).parents[2] / "deploy" / "monitoring" / "grafana-steps.json"
DASHBOARD = json.loads(FILE.read_text("utf-8"))
PANELS = DASHBOARD["panels"]


def test_it_is_one_that_grafana_knows() -> None:
    found = Dashboard.from_json(DASHBOARD)

    assert found.uid == "servioticy-steps"
    assert found.panels is not None
    assert len(found.panels) == len(PANELS)


def test_it_asks_the_postgres_that_is_chosen_and_nothing_else() -> None:
    sources = [each["datasource"] for each in PANELS]
    sources += [target["datasource"] for each in PANELS for target in each["targets"]]

    assert all(each == {"type": "postgres", "uid": "${source}"} for each in sources)
    assert [each["query"] for each in DASHBOARD["templating"]["list"]] == ["postgres"]


def test_each_panel_has_a_place_of_its_own_and_says_what_it_shows() -> None:
    assert len({each["id"] for each in PANELS}) == len(PANELS)
    assert all(each["title"] and each["description"] for each in PANELS)
    for one, other in combinations([each["gridPos"] for each in PANELS], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or apart, (one, other)
