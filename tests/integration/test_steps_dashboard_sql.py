"""The dashboard of steps asks the table of measurements, and is answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monitoring.model import Node, ResourceProfile, RuntimePerformance
from monitoring.publishers.postgres import PostgresPublisher
from servioticy.settings import Settings, changed
from servioticy.storage.database import Database

FILE = Path(__file__).parents[2] / "deploy/monitoring/grafana-steps.json"
PANELS = {
    each["title"]: each["targets"][0]["rawSql"]
    for each in json.loads(FILE.read_text())["panels"]
    if each.get("targets")
}
SECOND = 10**9
NOW = 1_700_000_000 * SECOND


def replaced(sql: str, macro: str, by: Callable[[str], str]) -> str:
    """Write a macro out, as Grafana does, whatever parentheses its arguments have."""
    while (begin := sql.find(f"{macro}(")) >= 0:
        end = first = begin + len(macro) + 1
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        sql = sql[:begin] + by(sql[first : end - 1]) + sql[end:]
    return sql


def asked(title: str) -> str:
    """What a panel asks of a minute around it, by half a minute."""
    sql = PANELS[title].replace("$__interval", "30")
    sql = replaced(sql, "$__timeFilter", lambda at: f"{at} BETWEEN {_time(-30)} AND {_time(30)}")
    return replaced(sql, "$__timeGroupAlias", _group)


def _time(seconds: int) -> str:
    return f"to_timestamp({NOW // SECOND + seconds})"


def _group(arguments: str) -> str:
    at, width = arguments.rsplit(",", 1)
    return f'floor(extract(epoch FROM {at}) / {width}) * {width} AS "time"'


def step(
    purpose: str,
    begin: int,
    lasted: int,
    sequence: str,
    error: str = "",
    *,
    for_links: bool = False,
) -> RuntimePerformance:
    """One that began so many ms after the moment, and lasted so many ms."""
    at = NOW + begin * 10**6
    node = Node("here/tests/1", purpose)
    return RuntimePerformance(
        node, "f", at, at + lasted * 10**6, sequence, error, for_links=for_links
    )


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    publisher = PostgresPublisher(changed(Settings(), dsn=dsn), "api", 1_000)
    steps = [
        step("store", 0, 4, "a" * 32),
        step("store", 5, 8, "a" * 32, "ValueError"),
        step("ask", 1, 1, "b" * 32),
        step("store", 2, 1_000, "c" * 32, for_links=True),
        step("store", 3_600_000, 500, "d" * 32),
    ]
    profile = ResourceProfile(
        Node("here/tests/1", "ask"), "f", NOW, NOW + 9, "b" * 32, 3_000_000, 0, 0
    )
    publisher.publish([*steps, profile])
    publisher.close()
    made = Database(dsn)
    yield made
    made.close()


def test_each_panel_tells_what_was_measured_in_its_time(database: Database) -> None:
    """Not what was told for links alone."""
    found = {title: database.rows(asked(title).replace("%", "%%")) for title in PANELS}

    at = NOW // SECOND // 30 * 30
    assert [(int(t), name, round(v, 2)) for t, name, v in found[PERCENTILE]] == [
        (at, "ask", 1.0),
        (at, "store", 7.96),
    ]
    assert [(int(t), name, float(v)) for t, name, v in found["Processor time of steps"]] == [
        (at, "ask", 3.0)
    ]
    assert [
        (name, n, float(mid), float(most), failed) for name, n, mid, most, failed in found["Steps"]
    ] == [
        ("store", 2, 6.0, 8.0, 1),
        ("ask", 1, 1.0, 1.0, 0),
    ]
    assert [(name, n, float(ms)) for name, n, ms in found["Longest sequences"]] == [
        ("a" * 32, 2, 13.0),
        ("b" * 32, 1, 1.0),
    ]


PERCENTILE = "Runtime of steps, 99 in 100 below"
