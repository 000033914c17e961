"""The examples of RFC 7396, and what they leave open."""

from __future__ import annotations

from typing import Any

import pytest

from servioticy.domain.documents.merging import merged

EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), EXAMPLES)
def test_a_patch_is_merged_as_the_rfc_says(document: Any, patch: Any, expected: Any) -> None:
    assert merged(document, patch) == expected


def test_keys_keep_their_order() -> None:
    """The order of streams is the order of computing."""
    found = merged({"a": 1, "b": 2, "c": 3}, {"d": 4, "b": 5})

    assert list(found.items()) == [("a", 1), ("b", 5), ("c", 3), ("d", 4)]


def test_what_is_patched_stays_as_it_was() -> None:
    document = {"a": {"b": 1}}

    assert merged(document, {"a": {"b": 2}}) == {"a": {"b": 2}}
    assert document == {"a": {"b": 1}}
