"""What composite streams ask for, as documents have it."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.actions import MOST, acting_streams, actions_of, check_actions
from servioticy.domain.model import Input, StreamRef

REF = StreamRef("so", "b")


def document(*actions: Any, version: str | None = None, **more: Any) -> dict[str, Any]:
    channels = {"x": {"type": "number", "current-value": "1"}}
    return {
        "version": version,
        "actions": [{"name": "open"}],
        "streams": {"b": {"channels": channels, "actions": list(actions)}},
        **more,
    }


def test_a_condition_reads_the_output_and_nothing_else() -> None:
    """In both dialects, whatever it says."""
    for version, code, name in (
        (None, "{$output.channels.x.current-value} > @limit@", "output"),
        (None, "true", "output"),
        ("0.2.0", "$output.lastUpdate > 3", "$output"),
    ):
        asked = {"action": "open", "if": code}
        (found,) = actions_of(
            document(asked, version=version, aliases={"@limit@": "3"}), REF, argument_names
        )
        assert found.condition is not None
        assert found.condition.inputs == (Input(name, (REF,)),)
        assert found.condition.own is None
    (found,) = actions_of(document({"action": "open"}), REF, argument_names)
    assert (found.condition, found.service_object, found.parameters) == (None, "so", "")


def test_a_condition_has_so_many_bytes_and_not_one_more() -> None:
    for size, fits in ((65_536, True), (65_537, False)):
        asked = {"action": "open", "if": "1" * size}
        try:
            actions_of(document(asked), REF, argument_names)
        except BadDocument as error:
            assert error.pointer == "/streams/b/actions/0/if"
            assert not fits
        else:
            assert fits


def test_conditions_that_take_long_to_read_are_refused() -> None:
    """They are read by the program that serves others, a tenth of what a document may take."""
    aliases = {f"@{'a' * 95}{number:03}": "b" for number in range(40)}
    code = "1" + " + 1" * 1000
    many = [{"action": "open", "if": f"{code} > {number}"} for number in range(MOST)]
    actions_of(document(*many[:1], aliases=aliases), REF, argument_names)

    with pytest.raises(BadDocument) as refused:
        check_actions(document(*many, aliases=aliases), "so", argument_names)

    assert (refused.value.code, refused.value.pointer) == ("too-slow", "/streams/b/actions")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (document({"action": "open"}), ["b"]),
        (document(), []),
        ({}, []),
        ({"streams": None}, []),
        ({"streams": {"b": None, "c": {"actions": [1]}, "d": {"channels": 1, "actions": 1}}}, []),
    ],
)
def test_which_streams_ask_is_found_in_whatever_was_accepted(
    content: dict[str, Any], names: list[str]
) -> None:
    assert acting_streams(content) == names
