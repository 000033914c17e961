"""What code asks of windows in vain is told when the document is sent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sandbox.text import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.documents.asked_of_windows import asked_of_windows

TUMBLING = {"window": {"type": "tumbling", "size": "10m"}}
SILENT = {"silent": "10m"}


def told(code: str, version: str = "0.2.0", over: Any = TUMBLING, **more: Any) -> list[str]:
    """Return what is told of a stream that reads `air` with this code."""
    streams = {
        "air": {"channels": {"celsius": {"type": "number"}, "room": {"type": "string"}}},
        "c": {"channels": {"v": {"type": "number", "current-value": code}}, **over, **more},
    }
    content = {"version": version, "streams": streams}
    return list(asked_of_windows(parse_service_object(content, "so", argument_names)))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "air.average('celsius')",
            "stream c: air.average: a window has count, start, .*'average'",
        ),
        ("air.channels.celsius['current-value']", "no 'channels'$"),
        ("air?.median('celsius')", "no 'median'$"),
        ("air.silent", "no 'silent'$"),
        ("air.mean('celcius')", r"air.mean: air has no channel 'celcius'$"),
        ('Object.keys(air.by("rom"))', r"air.by: air has no channel 'rom'$"),
        ("$input.lastUpdate", r"there is no \$input beside window: name an input$"),
        ("air." + "x" * 1000, "no 'x{40}...'$"),
    ],
)
def test_what_windows_do_not_have_is_told(code: str, said: str) -> None:
    (found,) = told(f"function(air) {{ return {code} }}")

    assert re.search(said, found)


@pytest.mark.parametrize(
    "code",
    [
        "air.count + air.end - air.start + air.counts('room') + air.updates.length",
        "air . quantile ( 'celsius', 0.9)",
        "air.by('room').kitchen.mean('celsius')",
        "Math.max(1, air.max('celsius')) + 'x'.air.other",
        "fair.average + iot.value(air.updates[0], 'celsius')",
    ],
)
def test_what_they_have_is_not_told(code: str) -> None:
    assert told(f"function(air) {{ return {code} }}") == []


def test_filters_are_looked_through_and_each_thing_is_told_once() -> None:
    code = "function(air) { return air.avg('celsius') + air.avg('celsius') }"

    found = told(code, **{"pre-filter": "air.avg('celsius') > 1 && air.least('celsius')"})

    assert [each.rpartition(" ")[2] for each in found] == ["'avg'", "'least'"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("{$air.average.celsius}", "{$air.average}: a window has"),
        ("{$air.quantile.celsius}", "no 'quantile'"),
        ("{$air.mean.celcius} + 1", "{$air.mean.celcius}: air has no channel 'celcius'"),
        ("{$air.channels.celsius.current-value}", "no 'channels'"),
    ],
)
def test_paths_of_expressions_are_told_too(code: str, said: str) -> None:
    (found,) = told(code, "0.1.0")

    assert said in found


def test_paths_that_lead_somewhere_are_not_told() -> None:
    assert told("{$air.mean.celsius} + {$air.count} + {$air.updates[0].lastUpdate}", "0.1.0") == []


def test_of_silence_there_is_less() -> None:
    assert told("function(air) { return air.silent + air.stream + air.count }", over=SILENT) == []
    (found,) = told("function(air) { return air.mean('celsius') }", over=SILENT)
    assert "what is told of silence has silent, stream, count, start, end, and no 'mean'" in found


def test_streams_without_windows_are_not_looked_at() -> None:
    assert told("function(air) { return air.average + $input.lastUpdate }", over={}) == []
