"""What the API says is wrong stands at its line and column of the text that is edited."""

from __future__ import annotations

from typing import Any

import pytest

from api.console.editing import read, write
from api.console.places import problem, problems

CODE = "function(air) {\n  return iot.value(air) +;\n}"
TEXT = write(
    {
        "streams": {
            "a/b~c": {"channels": {"x": {"type": "nmber"}}},
            "alarm": {"channels": {"hot": {"type": "boolean", "current-value": CODE}}},
            "short": {"channels": {"y": {"type": "number", "current-value": "1 +"}}},
        },
        "actions": [{"name": "one"}, {"name": "one"}],
    }
)


def told(pointer: str, detail: str = "no") -> tuple[int, int, str]:
    (found,) = problems({"errors": [{"pointer": pointer, "detail": detail}]}, read(TEXT), TEXT)
    assert found.reason == detail
    return found.line, found.column, TEXT[found.at : found.at + 6]


def test_a_value_is_found_by_its_pointer() -> None:
    assert told("/streams/a~1b~0c/channels/x/type")[2] == '"nmber'
    assert told("/actions/1/name")[2] == '"one"}'
    assert told("") == (1, 1, TEXT[:6])


def test_of_what_is_not_there_it_is_the_nearest_that_is() -> None:
    """A name that is missing has no place of its own."""
    assert told("/streams/alarm/channels/hot/unit")[2] == told("/streams/alarm/channels/hot")[2]
    assert told("/nothing/at/all") == told("")


def test_a_line_and_column_of_code_are_counted_from_where_it_begins() -> None:
    pointer = "/streams/alarm/channels/hot/current-value"
    line, column, text = told(pointer, "stream alarm: channel hot: line 2, column 26: no")

    assert text == ";\n}\n`\n"[:6]
    assert column == 26
    assert TEXT.splitlines()[line - 1] == "  return iot.value(air) +;"
    pointer = "/streams/short/channels/y/current-value"
    assert told(pointer, "channel y: line 1, column 3: no")[2] == '+"}}}\n'


def test_a_place_behind_the_end_is_the_end() -> None:
    pointer = "/streams/alarm/channels/hot/current-value"
    assert told(pointer, "x: line 999999999, column 999999999: no")[0] <= TEXT.count("\n") + 1
    assert problem("no", "ab", 7)[1:4] == (1, 3, 2)


def test_of_a_long_line_what_is_around_the_place_is_shown() -> None:
    text = "x\n" + "a" * 500 + "b" + "c" * 500
    found = problem("no", text, text.index("b"))

    assert (found.line, found.column) == (2, 501)
    assert found.text[found.before] == "b"
    assert len(found.text) == 90


@pytest.mark.parametrize("refused", [{}, {"errors": []}, {"errors": 3}, {"message": "no"}])
def test_what_tells_no_place_is_at_the_beginning(refused: dict[str, Any]) -> None:
    (found,) = problems(refused, read(TEXT), TEXT)
    assert (found.line, found.column) == (1, 1)
