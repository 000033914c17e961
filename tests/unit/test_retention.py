"""Where a history begins, and what documents may say of it."""

from __future__ import annotations

from typing import Any

import pytest

from servioticy.domain.documents import BadDocument
from servioticy.domain.retention import (
    FIRST,
    MAX_SECONDS,
    check_retention,
    kept_from,
    kept_seconds,
)

NOW = 1_795_000_000.25


@pytest.mark.parametrize(
    ("newest", "seconds", "begin"),
    [
        (1_795_000_000, 60, 1_794_999_940),
        (1_795_000_000_000, 60, 1_794_999_940_250),
        (100_000_000, 60, 1_794_999_940),
        (99_999_999, 60, FIRST),
        (-5, 60, FIRST),
        (None, 60, FIRST),
        (1_795_000_000, None, FIRST),
        (1_795_000_000, -1, FIRST),
        (1_795_000_000_000, MAX_SECONDS, 1_795_000_000_250 - MAX_SECONDS * 1000),
    ],
)
def test_where_a_history_begins(newest: int | None, seconds: int | None, begin: int) -> None:
    assert kept_from(newest, seconds, NOW) == begin


def test_a_streams_word_comes_before_the_documents() -> None:
    streams = {"a": {"dataTTL": 60}, "b": {}, "c": {"dataTTL": None}, "d": {"dataTTL": -1}}

    assert kept_seconds({"dataTTL": 5, "streams": streams}) == {"a": 60, "b": 5, "c": 5, "d": -1}
    assert kept_seconds({"streams": streams}) == {"a": 60, "b": None, "c": None, "d": -1}


@pytest.mark.parametrize("said", [0, -2, MAX_SECONDS + 1, 1.5, "60", True, []])
def test_what_cannot_be_acted_upon_is_refused_and_says_nothing_where_it_is_stored(
    said: Any,
) -> None:
    documents = (
        ("/dataTTL", {"dataTTL": said, "streams": {"a": {}}}),
        ("/streams/a/dataTTL", {"streams": {"a": {"dataTTL": said}}}),
    )
    for pointer, document in documents:
        with pytest.raises(BadDocument, match="has to be a whole number of seconds") as refused:
            check_retention(document)
        assert refused.value.pointer == pointer
        assert kept_seconds(document) == {"a": None}


@pytest.mark.parametrize("said", [-1, 1, 5_184_000, MAX_SECONDS, None])
def test_what_can_is_taken(said: int | None) -> None:
    check_retention({"dataTTL": said, "streams": {"a": {"dataTTL": said}}})


@pytest.mark.parametrize(("own", "whole"), [(60, None), (None, 60), (60, -1)])
def test_windows_stay_open_no_longer_than_results_are_kept(
    own: int | None, whole: int | None
) -> None:
    def a_document(lateness: str) -> dict[str, Any]:
        window = {"type": "tumbling", "size": "1m", "lateness": lateness}
        return {"dataTTL": whole, "streams": {"a": {"window": window, "dataTTL": own}}}

    check_retention(a_document("60s"))
    with pytest.raises(BadDocument, match="longer than results are kept, 60 s by dataTTL") as told:
        check_retention(a_document("61s"))
    assert (told.value.code, told.value.pointer) == ("bad-window", "/streams/a/window/lateness")
    check_retention({"dataTTL": -1, "streams": a_document("61s")["streams"] | {"a": {}}})
