"""A filter that is a function lets everything pass: that is told when the document is sent."""

from __future__ import annotations

import pytest

from sandbox.text import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.documents.filters_that_pass import filters_that_pass


def told(version: str, current: str, **filters: str) -> list[str]:
    channel = {"type": "number", "current-value": current}
    streams = {
        "air": {"channels": {"celsius": {"type": "number"}}},
        "c": {"channels": {"v": channel}, **filters},
    }
    document = {"version": version, "streams": streams}
    return list(filters_that_pass(parse_service_object(document, "so", argument_names)))


FUNCTION = "function(air) { return iot.value(air) }"


@pytest.mark.parametrize("key", ["pre-filter", "post-filter"])
@pytest.mark.parametrize(
    "code",
    [
        "function(air) { return false }",
        " function pass ( air ) { return false } ",
        "(air) => iot.value(air) > 3",
        "air => { return false }",
        "() => false",
    ],
)
def test_a_function_is_told(key: str, code: str) -> None:
    (found,) = told("0.2.0", FUNCTION, **{key: code})
    assert found.startswith(f"stream c: {key} is a function, which is always true")


@pytest.mark.parametrize(
    "code",
    [
        "iot.value(air) > 3",
        "functional > 3",
        "(air => iot.value(air) > 3)(air)",
        "function(x) { return x }(iot.value(air))",
        "(iot.value(air)) >= 3",
    ],
)
def test_what_is_computed_is_not(code: str) -> None:
    assert told("0.2.0", FUNCTION, **{"pre-filter": code}) == []


def test_so_it_is_with_expressions() -> None:
    code = "function() { return {$air.channels.celsius.current-value} > 3 }"
    assert len(told("0.1.0", "{$air.channels.celsius.current-value}", **{"pre-filter": code})) == 1
