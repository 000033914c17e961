"""The networks of `servioticy cluster`, without the programs: who reaches whom, cut and healed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import asked_networks
import pytest

from command.cluster import machines, network
from servioticy.errors import SetupError

ALL = {"client": "11", "store": "11", "driver": "11"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    folder = tmp_path_factory.mktemp("networks")
    try:
        command = network.alone([sys.executable, asked_networks.__file__, str(folder)])
    except SetupError as error:
        pytest.skip(str(error))
    paths = {"PYTHONPATH": str(Path(machines.__file__).parents[2])}
    done = subprocess.run(
        command, env={**os.environ, **paths}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_machines_reach_each_other(told: dict[str, dict[str, str]]) -> None:
    assert told["whole"] == ALL


def test_a_machine_that_is_cut_off_reaches_nobody(told: dict[str, dict[str, str]]) -> None:
    assert told["store cut off"] == {"client": "01", "store": "00", "driver": "10"}


def test_two_that_are_cut_reach_all_but_each_other(told: dict[str, dict[str, str]]) -> None:
    assert told["store and driver cut"] == {"client": "11", "store": "10", "driver": "10"}


def test_what_is_healed_is_as_before(told: dict[str, dict[str, str]]) -> None:
    assert told["healed"] == ALL


def test_nothing_is_left_of_them(told: dict[str, dict[str, str]]) -> None:
    shown = subprocess.run(["ip", "link", "show"], capture_output=True, text=True, check=True)

    assert network.SWITCH not in shown.stdout


def test_a_slow_cable_is_slow_there_and_back_and_no_other_is(
    told: dict[str, dict[str, str]],
) -> None:
    """40 ms: there and back to connect, and as much again for what comes then."""
    assert float(told["slow"]["store"]) > 0.08
    assert float(told["slow"]["driver"]) < float(told["slow"]["store"])
    assert told["no longer slow"] == ALL
