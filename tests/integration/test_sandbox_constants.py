"""What the values of a template become in code is what the sandbox allows."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox import SandboxPool, argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.documents.templates import parse_template
from servioticy.domain.scripts import program


@pytest.mark.parametrize(
    ("type_", "value"),
    [("string", 'it"s `${1}` */ \u2028'), ("number", -1.5), ("array", [1, "a", True])],
)
def test_constants_of_all_kinds_are_allowed(pool: SandboxPool, type_: str, value: Any) -> None:
    text = "{$a.channels.x.current-value} + JSON.stringify({{p}}) + '{{p}}' + `{{p}}`"
    channel = {"type": "string", "current-value": text}
    streams = {
        "a": {"channels": {"x": {"type": "number"}}},
        "s": {"channels": {"x": channel}, "pre-filter": {"$parameter": "p"}},
    }
    template = parse_template(
        {"parameters": {"p": {"type": type_}}, "document": {"streams": streams}}
    )
    definition = parse_service_object(template.filled({"p": value}), "so", argument_names)
    stream = definition.stream("s")
    assert stream is not None and stream.composite is not None

    assert pool.check_all([program(stream.ref, 0, stream.composite)]) == [[]]
