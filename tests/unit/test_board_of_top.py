"""The board of `servioticy top`: what it shows of two readings."""

from __future__ import annotations

from typing import Any

from command.remote.top import Reading, lines

QUIET: dict[str, Any] = {
    "programs": [],
    "partitions": [],
    "pressing": [],
    "sandbox": {"frames": 0, "kills": {}},
    "computations": {},
    "restingTenants": 0,
}
ROW = {
    "tenant": "lab",
    "serviceObject": "1401819725000a8098c1a57f24b3b9f8a5f4f8ad3c1e2",
    "stream": "warm",
    "processorSeconds": 12.5,
    "computations": 25_000,
    "eachSeconds": 0.0005,
}


def a_reading(at: float, slowest: Any = (), **more: Any) -> Reading:
    return Reading(at, QUIET | more, {"streams": list(slowest)})


def program(name: str, seconds: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "processorSeconds": seconds, "memoryBytes": 50_000_000, **more}


def line(found: list[str], begins: str) -> list[str]:
    return next(each for each in found if each.startswith(begins)).split()


def test_how_much_of_a_core_a_program_takes_is_told_from_the_second_look_on() -> None:
    first = a_reading(10.0, programs=[program("api", 4.0, starts=1)])
    second = a_reading(12.0, programs=[program("api", 5.0, starts=1), program("live", 1.0)])

    assert line(lines(first, None), "api") == ["api", "50", "MB", "1"]
    assert line(lines(second, first), "api") == ["api", "50%", "50", "MB", "1"]
    assert line(lines(second, first), "live") == ["live", "50", "MB"]


def test_a_program_that_was_started_again_has_no_share_yet() -> None:
    first = a_reading(10.0, programs=[program("api", 400.0, starts=1)])
    second = a_reading(12.0, programs=[program("api", 1.0, starts=2)])

    assert line(lines(second, first), "api") == ["api", "50", "MB", "2"]


def test_what_a_program_lacks_is_told() -> None:
    lack = {"name": "broker", "lack": "no answer at port 9404"}
    found = lines(a_reading(1.0, programs=[lack, program("api", 1.0, ready=False)]), None)

    assert line(found, "broker") == ["broker", "no", "answer", "at", "port", "9404"]
    assert line(found, "api")[-2:] == ["not", "ready"]


def test_computations_are_told_in_a_second_also_those_that_ended_so_for_the_first_time() -> None:
    first = a_reading(10.0, computations={"emitted": 100})
    second = a_reading(12.0, computations={"script-error": 3, "emitted": 1_120})

    found = lines(second, first)

    assert line(found, "emitted") == ["emitted", "1,120", "510"]
    assert line(found, "script-error") == ["script-error", "3", "1.50"]
    assert line(lines(first, None), "emitted") == ["emitted", "100"]


def test_who_presses_and_whose_code_takes_most() -> None:
    pressing = [{"tenant": "lab", "partition": 1, "putOff": 4_120, "overSeconds": 0.21}]
    late = {k: v for k, v in ROW.items() if k != "eachSeconds"} | {"stream": "late"}
    told = lines(
        a_reading(
            1.0,
            [ROW, late],
            pressing=pressing,
            partitions=[{"partition": 0, "behind": 3_000, "putOff": 0}],
            sandbox={"frames": 1, "kills": {"timeout": 2}},
            restingTenants=3,
        ),
        None,
    )

    assert line(told, "lab") == ["lab", "1", "4,120", "0.21", "s"]
    assert line(told, "0 ") == ["0", "3,000", "0"]
    assert "timeout 2" in "\n".join(told)
    assert line(told, "3 tenants")
    warm, late_line = (each.split() for each in told if "f4f8ad3c1e2" in each)
    assert warm == ["..5f4f8ad3c1e2", "warm", "lab", "12.50", "s", "25,000", "0.50", "ms"]
    assert late_line[-1] == "25,000"


def test_what_there_is_nothing_of_takes_no_room() -> None:
    assert lines(a_reading(1.0), None) == ["program  processor  memory  starts"]


def test_no_name_moves_the_cursor() -> None:
    hostile = ROW | {"stream": "a\x1b[2J", "tenant": "b\nc"}
    pressing = [{"tenant": "d\x9b", "partition": 0, "putOff": 1, "overSeconds": 0}]

    text = "\n".join(lines(a_reading(1.0, [hostile], pressing=pressing), None))

    assert not {"\x1b", "\x9b"} & set(text)
    assert "b\\nc" in text
