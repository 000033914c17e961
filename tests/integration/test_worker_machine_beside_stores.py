"""`servioticy doctor --worker` beside real stores: whether it gets in, and its clock."""

from __future__ import annotations

import time

import pytest

from command import worker_machine
from command.doctor import Check
from command.worker_machine import MOST_SKEW_SECONDS
from servioticy.bootstrap import make_topics
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed, load


@pytest.fixture(scope="module")
def settings(module_dsn: str, real_kafka: EmbeddedKafka) -> Settings:
    own = {"dsn": module_dsn, "bootstrap_servers": real_kafka.bootstrap_servers}
    found = load({}, {**own, "topic_prefix": "worker-machine-", "partitions": 2})
    make_topics(found)
    return found


def told(settings: Settings, ahead_seconds: float = 0.0) -> dict[str, Check]:
    def clock() -> float:
        return time.time() + ahead_seconds

    return {each.name: each for each in worker_machine._postgres(settings, clock)}


def test_all_is_well_beside_real_stores(settings: Settings) -> None:
    checks = {each.name: each for each in worker_machine.examine(settings)}

    assert [each for each in checks.values() if not each.ok] == []
    assert checks["kafka"].detail.startswith("2 partitions")


@pytest.mark.parametrize(("ahead", "sign"), [(-60.0, "-"), (60.0, "+")])
def test_a_clock_that_is_wrong_is_told_which_way(
    ahead: float, sign: str, settings: Settings
) -> None:
    check = told(settings, ahead)["clock"]

    assert not check.ok
    assert check.detail.startswith((f"{sign}59.", f"{sign}60."))
    assert "NTP" in check.remedy


def test_a_clock_may_be_wrong_by_less(settings: Settings) -> None:
    assert told(settings, MOST_SKEW_SECONDS / 2)["clock"].ok


def test_who_is_not_let_in_is_told_where_to_look(settings: Settings) -> None:
    there = settings.store.dsn.rpartition("/")[0]

    check = told(changed(settings, dsn=f"{there}/no_such_database"))["postgres"]

    assert not check.ok
    assert "no_such_database" in check.detail
    assert "pg_hba.conf" in check.remedy
