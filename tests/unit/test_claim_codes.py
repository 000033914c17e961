"""Codes as people type them, the tokens that follow from claims, and names that fit a pattern."""

from __future__ import annotations

import re
from typing import Any

import pytest

from servioticy.domain.claim_codes import Claim, fits, new_code, read_claim, read_code
from servioticy.domain.documents import BadDocument
from servioticy.domain.tokens import LENGTH, new_token

CLAIM = Claim("0" * 20, "d", "k" * 16, {})


def test_a_code_is_read_as_it_is_told_and_as_people_write_it() -> None:
    code = new_code()
    letters = code.replace("-", "")

    assert re.fullmatch(r"([0-9A-HJKMNP-TV-Z]{5}-){3}[0-9A-HJKMNP-TV-Z]{5}", code)
    assert read_code(code) == read_code(code.lower()) == read_code(f" {letters} ") == letters
    assert read_code("ilo10-ilo10-ilo10-ilo10") == "1101011010" * 2


@pytest.mark.parametrize("text", ["", "7K3QM", "U" * 20, "7" * 21, "\u0661" * 20, "7" * 19 + "ß"])
def test_what_cannot_be_a_code_is_none(text: str) -> None:
    assert read_code(text) is None


def test_a_token_follows_from_all_that_was_sent_and_the_salt() -> None:
    """The same gives the same; anything else another one."""
    others = [
        Claim("1" * 20, "d", "k" * 16, {}),
        Claim("0" * 20, "e", "k" * 16, {}),
        Claim("0" * 20, "d", "l" * 16, {}),
        Claim("0" * 20, "dk", "k" * 15, {}),
    ]
    tokens = {each.token(b"salt") for each in (CLAIM, *others)} | {CLAIM.token(b"other")}

    assert len(tokens) == 6
    assert CLAIM.token(b"salt") in tokens
    assert {len(each) for each in tokens} == {LENGTH}


def test_tokens_are_letters_and_digits_of_one_length() -> None:
    """They stand in headers, addresses and shells, and small devices keep them."""
    assert all(re.fullmatch(r"[0-9A-Za-z]{22}", new_token()) for _ in range(1000))


@pytest.mark.parametrize(
    ("pattern", "fitting", "not_fitting"),
    [
        ("*", ["", "a", "[x]"], []),
        ("SN-??", ["SN-01"], ["SN-1", "SN-012", "sn-01"]),
        ("[a]*", ["[a]", "[a]b"], ["a", "ab"]),
        ("a*b*c", ["abc", "a1b2c"], ["ab", "acb"]),
    ],
)
def test_names_fit_a_pattern(pattern: str, fitting: list[str], not_fitting: list[str]) -> None:
    assert all(fits(each, pattern) for each in fitting)
    assert not any(fits(each, pattern) for each in not_fitting)


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    """Backtracking would take longer than anybody lives."""
    assert not fits("a" * 200, "*a" * 90 + "b")


@pytest.mark.parametrize("name", ["code", "device", "key"])
@pytest.mark.parametrize("value", [None, 5, "", "\n", ["x"], "\ud800" * 20])
def test_a_claim_says_what_it_lacks(name: str, value: Any) -> None:
    sent = {"code": "7" * 20, "device": "d", "key": "k" * 16} | {name: value}
    if value is None:
        del sent[name]

    with pytest.raises(BadDocument) as error:
        read_claim(sent)

    assert error.value.pointer == ("" if value is None else f"/{name}")
