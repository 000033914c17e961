"""Events are lines of JSON, ours from the level that is asked for."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from servioticy import logs


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What `configure` changes is of the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logs.OURS}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


@pytest.mark.parametrize(
    "name", ["servioticy.pipeline", "api", "ingest", "delivery", "pipeline.x"]
)
def test_events_of_every_program_are_written(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the API used to be lost below WARNING."""
    logs.configure("INFO")
    logging.getLogger(name).info("happened", extra={"offset": 7, "why": 'a "b"\n'})
    logging.getLogger(name).debug("too_much")

    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["program"], event["level"], event["event"]) == (name, "info", "happened")
    assert (event["offset"], event["why"]) == (7, 'a "b"\n')


def test_others_are_heard_from_warnings_on(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("DEBUG")
    logging.getLogger("kafka.net").info("chatter")
    logging.getLogger("kafka.net").warning("trouble")

    assert [json.loads(each)["event"] for each in capsys.readouterr().err.splitlines()] == [
        "trouble"
    ]
