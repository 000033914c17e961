"""What the pool believes of a worker that a script may have taken over: beside what trees make."""

from __future__ import annotations

import pytest

from sandbox.host.answers import MAX_MESSAGE, MalformedAnswer, decode_layers, decode_problems


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b"[]",
        b"[[],[]]",
        b"[1]",
        b"[[1]]",
        b'[[["syntax"]]]',
        b'[[["other","x"]]]',
        b'[[["policy",1]]]',
        b'[[[["syntax"],"x"]]]',
    ],
)
def test_what_is_no_list_of_problems_is_garbage(answer: bytes) -> None:
    """Only two kinds of problems exist, and each has a text."""
    with pytest.raises(MalformedAnswer):
        decode_problems(answer, 1)


def test_problems_are_clipped() -> None:
    """A tenant is shown them."""
    answer = b'[[["policy","%b"]],[]]' % (b"x" * (MAX_MESSAGE + 1))

    assert decode_problems(answer, 2) == [[("policy", "x" * MAX_MESSAGE + "...")], []]


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"user":1}', b"5"])
def test_what_is_no_table_of_layers_is_garbage(answer: bytes) -> None:
    """Said before any script runs, and looked at all the same."""
    with pytest.raises(MalformedAnswer):
        decode_layers(answer)
