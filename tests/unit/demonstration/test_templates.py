"""The demonstration's documents are documents the platform accepts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from demonstration import templates
from demonstration.objects import COMPOSITES
from demonstration.series import UNITS
from demonstration.smoothing import DEVIATIONS, SMOOTHING, VALUES
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "anomalies.md"
IDS = {name: f"id0of0{name}" for name in UNITS}


@pytest.mark.parametrize("name", sorted(UNITS))
def test_devices_are_simple_streams(name: str) -> None:
    definition = parse_service_object(templates.device(name), "x", argument_names)

    assert [stream.composite for stream in definition.streams] == [None]


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_are_understood(name: str) -> None:
    document = templates.composite(name, IDS)
    definition = parse_service_object(document, "x", argument_names)

    assert all(stream.composite for stream in definition.streams)
    assert "{{" not in str(document)


def test_what_is_shown_exists() -> None:
    for shown in (*templates.SHOWN, *templates.BANDS):
        document = templates.composite(shown.document, IDS)
        assert shown.channel in document["streams"][shown.stream]["channels"]


def test_both_dialects_are_shown() -> None:
    versions = {templates.composite(name, IDS)["version"] for name in COMPOSITES}

    assert versions == {"0.1.0", "0.2.0"}


def test_bands_are_one_document_with_other_names() -> None:
    co2, flow = (templates.composite(f"band:{name}", IDS) for name in ("co2", "flow"))

    assert co2["groups"]["series"]["soIds"] == [IDS["co2"]]
    assert json.loads(json.dumps(co2).replace("co2", "flow")) == flow


def test_numbers_of_the_document_are_those_that_are_computed_with_apart() -> None:
    text = templates.template("band")

    assert f"s + (1 - {SMOOTHING}) * (x - s)" in text
    assert f'{{"type": "count", "size": {VALUES}, "every": 1}}' in text
    reach = f"{DEVIATIONS} * Math.sqrt({VALUES - 1} / {VALUES}) * smoothed.stdev('value')"
    assert text.count(reach) == 2


def test_a_page_prints_the_document_of_bands() -> None:
    (printed,) = re.findall(r"/band\.json <<'END'\n(.*?)\nEND", PAGE.read_text("utf-8"), re.DOTALL)

    assert json.loads(printed) == templates.composite("band:celsius", {"celsius": "room"})
