"""Where a token stands in a request, for the API and for delivery."""

from __future__ import annotations

import hashlib

import pytest

from servioticy.domain.tokens import digest, read_token


@pytest.mark.parametrize(
    "value",
    ["abc", " abc ", "Bearer abc", "bearer abc", "BEARER  abc ", "  Bearer abc"],
)
def test_a_token_comes_alone_or_after_bearer(value: str) -> None:
    assert read_token(value) == "abc"


@pytest.mark.parametrize("value", ["", " ", "Bearer", "Bearer ", " bearer  "])
def test_without_a_token_there_is_none(value: str) -> None:
    assert read_token(value) == ""


@pytest.mark.parametrize("value", ["Basic YTpi", "bearerabc", "a b"])
def test_what_is_no_bearer_is_a_token_as_it_stands(value: str) -> None:
    """It will not be known; that is for the store to say."""
    assert read_token(value) == value


def test_what_is_kept_of_a_token_is_its_digest() -> None:
    assert digest("abc") == hashlib.sha256(b"abc").digest()
