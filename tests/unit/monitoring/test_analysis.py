"""What measurements say: runtimes, latencies, sequences, and the framework's part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from command import cli
from monitoring.analysis.analysing import MAX_ROWS, OTHERS, Spread, analysed
from monitoring.analysis.boxes import drawn
from monitoring.analysis.steps import MAX_LINE, Read, Step, TooMany, read
from monitoring.model import Calls, Node, RuntimePerformance


def step(purpose: str, start: int, end: int, sequence: str = "1", node: str = "n") -> Step:
    return Step(purpose, node, start, end, sequence)


def told(*steps: Step) -> Any:
    return analysed(Read([*steps], 0))


def middles(spreads: list[Spread]) -> dict[str, float]:
    return {each.what: each.middle for each in spreads}


def written(folder: Path, *measurements: Any) -> Path:
    file = folder / "some.ndjson"
    file.write_bytes(msgspec.json.Encoder().encode_lines(measurements))
    return file


def half(start: int | None, end: int | None, sequence: str = "1") -> RuntimePerformance:
    return RuntimePerformance(Node("n", "both"), "f", start, end, sequence)


def test_runtimes_are_told_by_purpose_and_node() -> None:
    """Two nodes of one purpose are told apart: one of them may be slow."""
    steps = [step("a", at, at + 10 * (1 + at), node=f"n{at % 2}") for at in range(8)]
    found = told(*steps).runtime

    assert [(each.what, each.node, each.count) for each in found] == [
        ("a", "n0", 4),
        ("a", "n1", 4),
    ]
    assert (found[0].least, found[0].middle, found[0].most) == (10, 50, 70)


def test_latency_lies_between_the_end_of_a_step_and_the_next_ones_beginning() -> None:
    """Not from a step that lasts still: that one calls the next."""
    found = told(step("whole", 0, 100), step("a", 10, 20), step("b", 25, 40), step("c", 47, 60))

    assert middles(found.latency) == {"a to b": 5, "b to c": 7}


def test_steps_of_two_sequences_have_no_latency_between_them() -> None:
    assert told(step("a", 0, 1), step("b", 2, 3, "2")).latency == []


def test_a_sequence_lasts_from_its_first_start_to_its_last_end() -> None:
    """One of a single step tells no more than that step does."""
    found = told(step("a", 5, 10), step("b", 12, 30), step("a", 0, 9, "2"))

    assert [(each.count, each.middle) for each in found.sequences] == [(1, 25)]


@pytest.mark.parametrize(
    ("steps", "part"),
    [
        ([step("a", 0, 50), step("b", 50, 100)], 0.0),
        ([step("a", 0, 25), step("b", 75, 100)], 0.5),
        ([step("whole", 0, 100), step("a", 0, 25), step("b", 50, 100)], 0.25),
        ([step("a", 0, 60), step("b", 40, 100)], 0.0),
        ([step("whole", 0, 100), step("a", 20, 80), step("inner", 30, 40)], 0.9),
    ],
)
def test_the_framework_has_what_no_innermost_step_takes(steps: list[Step], part: float) -> None:
    (found,) = told(*steps).framework

    assert found.middle == pytest.approx(part)


def test_halves_of_a_measurement_are_put_together_by_purpose_and_sequence(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        half(None, 30),
        half(10, None),
        half(20, None, "2"),
        half(None, 5, "3"),
        Calls(Node("n", "both"), "f", 1, 1, 0),
    )
    found = read([file])

    assert found.steps == [Step("both", "n", 10, 30, "1")]
    assert found.skipped == 2


def test_what_is_told_for_its_links_is_no_part_of_any_statistics(tmp_path: Path) -> None:
    """A call about many updates is told so more often than one about few: no fair sample."""
    some = [half(1, 2), half(10, 90), half(None, 30, "2"), half(10, None, "2")]
    links = [msgspec.structs.replace(each, for_links=True) for each in some[1:]]
    found = read([written(tmp_path, some[0], *links)])

    assert (found.steps, found.skipped) == ([Step("both", "n", 1, 2, "1")], 0)


def test_what_is_no_measurement_is_skipped(tmp_path: Path) -> None:
    """The last line of a program that was killed, for one."""
    file = written(tmp_path, half(1, 2))
    with file.open("ab") as opened:
        opened.write(b'{"type":"Other"}\n\xff\n' + b"x" * (MAX_LINE - 1) + b'\n{"type":"Runt')

    assert (len(read([file]).steps), read([file]).skipped) == (1, 4)


def test_more_steps_than_are_read_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path, *[half(1, 2)] * 6, half(1, None), half(None, 2))
    with pytest.raises(TooMany, match="more than 7 steps: name fewer files, or sample less"):
        read([file], most=7)

    assert len(read([file], most=8).steps) == 7


def test_a_table_has_so_many_rows_and_no_more() -> None:
    found = told(*[step(f"p{number}", 0, 1, str(number)) for number in range(MAX_ROWS + 50)])

    assert len(found.runtime) == MAX_ROWS + 1
    assert next(each.count for each in found.runtime if each.what == OTHERS) == 50


def test_the_picture_has_a_box_for_each_and_says_what_it_is() -> None:
    """What is measured may have any name: it is text."""
    steps = [step("<a>&", 10 * at, 10 * at + 5, str(at // 2)) for at in range(20)]
    picture = ElementTree.fromstring(drawn(told(*steps)))
    boxes = picture.findall(".//{*}rect[@class='box']")
    titles = [each.text for each in picture.findall(".//{*}g/{*}title")]

    assert len(boxes) == len(titles) == 3
    assert titles[0] == "<a>& n: 20 times, middle 0.000 ms"
    assert "nan" not in drawn(told(*steps))


def test_a_picture_of_nothing_is_one() -> None:
    assert ElementTree.fromstring(drawn(told())).tag.endswith("svg")


def test_the_command_tells_tables_json_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "monitoring/measurements"
    folder.mkdir(parents=True)
    written(folder, half(1_000_000, 3_500_000), half(4_000_000, 5_000_000))
    picture = tmp_path / "boxes.svg"
    run = ["monitoring", "analyse", "--data", str(tmp_path)]
    assert cli.main([*run, "--svg", str(picture)]) == 0
    tables = capsys.readouterr().out
    assert cli.main([*run, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert tables.startswith("2 steps, 0 lines skipped\n\nruntime of steps, ms\n")
    assert "both to both" in tables
    assert found["sequences"][0]["middle"] == 4_000_000
    assert picture.read_text().startswith("<svg")


def test_without_measurements_the_command_says_where_it_has_looked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["monitoring", "analyse", "--data", str(tmp_path)]) == 1
    assert f"no measurements in {tmp_path}" in capsys.readouterr().err
