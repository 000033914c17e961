"""The file of aspects is followed, and what comes of it is told."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import waiting
import woven_steps
from scraped import samples

from command import cli
from monitoring import following, status
from monitoring.configuration import MAX_BYTES, NotUnderstood, file_of, parsed
from monitoring.following import Following
from monitoring.model import Node, RuntimePerformance
from monitoring.publishers.file import FilePublisher
from monitoring.publishers.sums import MOST, Sums
from servioticy.metrics import Registry
from servioticy.settings import Settings, changed

NAME = woven_steps.__name__
ASPECT = f'[[aspect]]\npointcut = "{NAME}.first"\n'
UPDATES = [woven_steps.Update(1)]


class Place:
    """A data folder with a process that follows its file of aspects."""

    def __init__(self, data: Path) -> None:
        self.data, self.file = data, data / "aspects.toml"
        self.settings = changed(Settings(), data=str(data))
        self.following = Following(self.file, data, "tests")
        self.measurements = data / "monitoring/measurements" / f"tests-{os.getpid()}.ndjson"
        self._written = 0

    def say(self, text: str) -> None:
        self.file.write_text(text)
        self._written += 1  # files of one moment and one size are told apart
        os.utime(self.file, (self._written, self._written))
        self.following.look()

    def measured(self) -> list[dict[str, Any]]:
        self.following.look()
        text = self.measurements.read_text() if self.measurements.exists() else ""
        return [json.loads(each) for each in text.splitlines()]

    def lines(self) -> list[str]:
        return status.lines(status.of(self.settings))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.following.stop()


def test_a_file_that_comes_is_woven_and_one_that_goes_leaves_nothing(place: Place) -> None:
    before = woven_steps.first.__code__
    place.following.look()
    assert sorted(place.data.iterdir()) == []
    place.say(ASPECT)
    assert woven_steps.first.__code__ is not before
    woven_steps.first(UPDATES)
    (measured,) = place.measured()
    place.file.unlink()
    place.following.look()

    assert measured["type"] == "RuntimePerformance"
    assert measured["place"] == f"{NAME}.first"
    assert measured["node"]["nodePurpose"] == f"{NAME}.first"
    assert measured["node"]["nodeId"].endswith(f"/tests/{os.getpid()}")
    assert measured["end"] >= measured["start"]
    assert woven_steps.first.__code__ is before
    assert list((place.data / "monitoring/processes").iterdir()) == []


def test_a_file_that_is_not_understood_changes_nothing(place: Place) -> None:
    place.say(ASPECT)
    woven = woven_steps.first.__code__
    place.say(f"{ASPECT}sample = 2\n")

    assert woven_steps.first.__code__ is woven
    (line,) = place.lines()
    assert line.startswith(f"{place.file} is not understood: Expected `float` <= 1.0 - at ")
    place.say(ASPECT)
    assert status.of(place.settings).is_well


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("aspect = 1", r"Expected `array`, got `int` - at `\$\.aspect`"),
        ("[[aspect]]", "missing required field `pointcut`"),
        ('[[aspect]]\npointcut = "a b"', "matching regex"),
        (f"{ASPECT}unknown = 1", "unknown field `unknown`"),
        (f'{ASPECT}advice = "around it"', "Invalid enum value 'around it'"),
        (f"{ASPECT}measures = []", "Expected `array` of length >= 1"),
        (f"{ASPECT}sample = -0.1", "Expected `float` >= 0.0"),
        (f'{ASPECT}sequence = "a..b"', "matching regex"),
        (f'{ASPECT}advice = "after"\nmeasures = ["count"]', r"`\$.aspect\[0\].measures`"),
        (ASPECT * 101, "Expected `array` of length <= 100"),
        ("[publish]\nbuffer_bytes = 1", "Expected `int` >= 4096"),
        ('[publish]\nto = ["pigeon"]', "Invalid enum value 'pigeon'"),
        ("[[aspect", "at line 1|at end of document"),
        ("# \udcff", "can't decode"),
        ("#" * (MAX_BYTES + 1), f"more than {MAX_BYTES} bytes"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, why: str) -> None:
    with pytest.raises(NotUnderstood, match=why):
        parsed(text.encode(errors="surrogateescape"))


def test_a_module_that_is_loaded_later_is_woven_then(place: Place, tmp_path: Path) -> None:
    name = f"loaded_later_{os.getpid()}"
    (tmp_path / f"{name}.py").write_text("def step():\n    return 1\n")
    place.say(f'[[aspect]]\npointcut = "{name}.*"\n')
    assert "    no process that runs here has it" in place.lines()
    sys.path.insert(0, str(tmp_path))
    try:
        module = __import__(name)
    finally:
        sys.path.remove(str(tmp_path))
    place.following.look()

    assert place.following.woven == 1
    assert module.step() == 1
    del sys.modules[name]


def test_the_status_says_in_how_many_processes_and_why_not(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.say(f'{ASPECT}[[aspect]]\npointcut = "{NAME}.Table.nothing"\n')
    told = place.lines()

    assert told[:4] == [
        f"aspects of {place.file}",
        f"  {NAME}.first: woven in 1 of 1 processes",
        f"  {NAME}.Table.nothing: woven in 0 of 1 processes",
        f"    not {NAME}.Table.nothing: {NAME}.Table has no nothing",
    ]
    assert cli.main(["monitoring", "status", "--json", "--data", str(place.data)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["well"], found["processes"][0]["program"]) == (False, "tests")


def test_a_process_that_has_ended_is_not_told(place: Place, tmp_path: Path) -> None:
    """Though it was killed, and another has its number by now."""
    place.say(ASPECT)
    file = tmp_path / "monitoring/processes" / f"{os.getpid()}.json"
    state = json.loads(file.read_text())
    (file.parent / "1.json").write_text(json.dumps({**state, "pid": 1, "birth": "another"}))
    (file.parent / "2.json").write_text("{")

    assert [each.pid for each in status.of(place.settings).processes] == [os.getpid()]


def test_without_a_file_nothing_is_woven_and_that_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["monitoring", "status", "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("nothing is woven: there is no ")


def test_measurements_may_go_to_the_log(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "servioticy.monitoring")
    place.say(f'[publish]\nto = ["log"]\n{ASPECT}')
    woven_steps.first(UPDATES)
    place.following.look()
    (measured,) = [each for each in caplog.records if each.getMessage() == "measured"]

    assert measured.measurement["place"] == f"{NAME}.first"  # type: ignore[attr-defined]
    assert not place.measurements.exists()


def test_a_publisher_that_fails_costs_what_it_was_given(place: Place) -> None:
    """The others get it, and whoever is woven knows nothing of it."""
    (place.data / "monitoring").mkdir()
    (place.data / "monitoring/measurements").write_text("in the way")
    place.say(f'[publish]\nto = ["file", "log"]\n{ASPECT}')

    assert woven_steps.first(UPDATES) == 1
    place.following.look()
    assert (place.following.dropped, place.following.published) == (1, 0)


def test_the_file_is_followed_however_much_is_measured_meanwhile(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nothing would be unwoven as long as a program is busy."""
    place.say(ASPECT)
    publish, calls = FilePublisher.publish, []

    def published(self: FilePublisher, some: Any) -> None:
        calls.append(len(some))
        if len(calls) < 10:
            other = threading.Thread(target=woven_steps.first, args=(UPDATES,))
            other.start()
            other.join()
        publish(self, some)

    monkeypatch.setattr(FilePublisher, "publish", published)
    woven_steps.first(UPDATES)
    place.following.look()
    assert calls == [1]
    place.following.look()
    assert calls == [1, 1]


def test_a_full_file_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "some.ndjson"
    publisher = FilePublisher(file, 100)
    for number in range(5):
        publisher.publish([f"{number}" * 30] * 2)  # type: ignore[list-item]

    assert sorted(each.name for each in tmp_path.iterdir()) == ["some.ndjson", "some.ndjson.1"]
    assert file.read_text().startswith('"444')
    assert file.with_name("some.ndjson.1").read_text().startswith('"333')


def test_what_is_woven_is_told_as_metrics(tmp_path: Path) -> None:
    (tmp_path / "aspects.toml").write_text(ASPECT)
    registry = Registry(with_process=False)
    begun = following.begin(changed(Settings(), data=str(tmp_path)), "tests", registry)
    try:
        woven_steps.first(UPDATES)
        waiting.until(lambda: samples(registry.text())["servioticy_measurements_total"])
        found = samples(registry.text())
    finally:
        begun.stop()

    assert found["servioticy_woven_functions"] == 1
    assert found["servioticy_measurements_dropped_total"] == 0


def test_measurements_may_go_to_the_metrics_of_their_program(tmp_path: Path) -> None:
    """Of so many purposes, as each is a time series."""
    aspects = f'{ASPECT}purpose = "counting"\n'
    (tmp_path / "aspects.toml").write_text(f'[publish]\nto = ["metrics"]\n{aspects}')
    registry = Registry(with_process=False)
    begun = following.begin(changed(Settings(), data=str(tmp_path)), "tests", registry)
    for _ in range(3):
        woven_steps.first(UPDATES)
    begun.stop()
    found = samples(registry.text())

    assert found['servioticy_woven_steps_total{purpose="counting"}'] == 3
    assert 0 < found['servioticy_woven_step_seconds_total{purpose="counting"}'] < 60


def test_purposes_beyond_so_many_are_others() -> None:
    sums = Sums()
    for number in range(MOST + 5):
        node = Node("n", f"p{number}")
        sums.publish([RuntimePerformance(node, "f", 0, 1_000_000_000, "1")])

    assert len(sums.steps()) == MOST + 1
    assert sums.steps()["others",] == sums.seconds()["others",] == 5


def test_what_is_told_for_its_links_is_not_summed() -> None:
    sums, node = Sums(), Node("n", "p")
    sums.publish(
        [RuntimePerformance(node, "f", 0, 9, "1", for_links=each) for each in (False, True)]
    )

    assert sums.steps() == {("p",): 1}


def test_a_program_publishes_what_waits_at_its_end(tmp_path: Path) -> None:
    """One that lasts less than a second has measured all the same, and leaves no state."""
    (tmp_path / "aspects.toml").write_text('[[aspect]]\npointcut = "json.dumps"\n')
    program = (
        "import json; from monitoring import following; from servioticy.settings import load;"
        "following.begin(load(), 'tests', None); json.dumps(1)"
    )
    environment = {**os.environ, "SERVIOTICY_DATA": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    (file,) = (tmp_path / "monitoring/measurements").iterdir()

    assert json.loads(file.read_text())["place"] == "json.dumps"
    assert list((tmp_path / "monitoring/processes").iterdir()) == []


def test_a_file_elsewhere_may_be_named(tmp_path: Path) -> None:
    file = tmp_path / "of-mine.toml"

    assert file_of(changed(Settings(), monitoring_aspects=str(file))) == file
