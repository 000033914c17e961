"""The demonstration's documents are documents the platform accepts."""

from __future__ import annotations

import pytest

from demonstration import templates
from demonstration.objects import COMPOSITES
from demonstration.series import UNITS
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object

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
    for shown in templates.SHOWN:
        document = templates.composite(shown.document, IDS)
        assert shown.channel in document["streams"][shown.stream]["channels"]


def test_both_dialects_are_shown() -> None:
    versions = {templates.composite(name, IDS)["version"] for name in COMPOSITES}

    assert versions == {"0.1.0", "0.2.0"}
