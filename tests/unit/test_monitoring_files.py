"""Files for Prometheus and Grafana: what they ask is served, and their form is theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel, RowPanel

from servioticy.metrics.names import METRICS

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy" / "monitoring"
PAGE = (ROOT / "docs" / "how-to" / "monitor.md").read_text("utf-8")
DASHBOARD = json.loads((FILES / "grafana-dashboard.json").read_text("utf-8"))
RULES = yaml.safe_load((FILES / "servioticy.rules.yml").read_text("utf-8"))
PROMETHEUS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""What every target of Prometheus has, or every program by its library."""
OF_TARGETS = {"job", "instance", "le"}
COLUMNS = 24


def panels() -> list[dict[str, Any]]:
    return [each for each in DASHBOARD["panels"] if each["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for group in RULES["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")


@pytest.mark.parametrize("expression", [each for _, each in expressions()])
def test_what_is_asked_is_an_expression_of_metrics_that_are_served(expression: str) -> None:
    """With labels that they have: one that has another name by now shows nothing."""
    promql_parser.parse(expression)
    served = {each.name: each for each in METRICS}
    names = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for name in re.findall(r"\b(?:servioticy|process)_[a-z_]+|\bup\b", expression)
    }
    assert names
    assert names <= {*served, *PROMETHEUS}
    labels = {label for name in names & served.keys() for label in served[name].labels}
    asked = set(re.findall(r"\b([a-z]+) *=~?", expression))
    for some in re.findall(r"\bby \(([^)]*)\)", expression):
        asked |= {each.strip() for each in some.split(",")}
    assert asked <= {*labels, *OF_TARGETS}


def test_legends_name_labels_that_are_left() -> None:
    for panel in panels():
        for target in panel["targets"]:
            by = re.findall(r"\bby \(([^)]*)\)", target["expr"])
            named = set(re.findall(r"{{([a-z]+)}}", target.get("legendFormat", "")))
            left = {each.strip() for some in by for each in some.split(",")}
            assert named <= left or not by, panel["title"]


def test_the_page_prints_what_the_files_have() -> None:
    printed = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

    assert printed == [
        (FILES / name).read_text("utf-8") for name in ("prometheus.yml", "servioticy.rules.yml")
    ]


def test_the_dashboard_is_one_that_grafana_knows() -> None:
    found = Dashboard.from_json(DASHBOARD)

    assert found.uid == "servioticy"
    assert found.panels is not None
    assert {type(each) for each in found.panels} == {Panel, RowPanel}


def test_each_panel_has_a_place_of_its_own_and_says_what_it_shows() -> None:
    ids = [each["id"] for each in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    places = [each["gridPos"] for each in DASHBOARD["panels"]]
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or apart, (one, other)
    assert max(each["x"] + each["w"] for each in places) == COLUMNS
    assert all(each["description"] and each["title"] for each in panels())


def test_it_asks_the_prometheus_that_is_chosen_and_nothing_else() -> None:
    sources = {json.dumps(each["datasource"]) for each in panels()}
    sources |= {json.dumps(t["datasource"]) for each in panels() for t in each["targets"]}

    assert [json.loads(each) for each in sources] == [{"type": "prometheus", "uid": "${source}"}]
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["source"]
