"""Whether a composite stream is computed again where an input is revised."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from servioticy.domain.documents.codes import BAD_WINDOW, WRONG_TYPE
from servioticy.domain.documents.errors import Part
from servioticy.domain.model import Composite
from servioticy.domain.windowed import FOLLOW


def says_follow(stream: Part, content: Mapping[str, Any]) -> bool:
    """Return whether the stream's document says so. Raises BadDocument."""
    found = content.get(FOLLOW)
    if found is not None and not isinstance(found, bool):
        raise stream.at(FOLLOW, words=FOLLOW).bad("has to be true or false", WRONG_TYPE)
    return found is True


def following(
    stream: Part, composite: Composite, named: Collection[str], *, is_over_windows: bool
) -> Composite:
    """Return the composite as one that follows revisions. Raises BadDocument.

    `named` is what its code names. Its own last output is not read.
    """
    part = stream.at(FOLLOW, words=FOLLOW)
    if is_over_windows:
        raise part.bad(
            "is for a stream that reads results of windows: one with window or silent of its own "
            "takes revisions into nothing",
            BAD_WINDOW,
        )
    own = None if composite.own is None else composite.inputs[composite.own].name
    if own in named:
        raise part.bad(f"code beside it cannot read {own!r}, its own last output", BAD_WINDOW)
    if composite.options.diamonds != "first":
        reason = "has no meaning beside diamonds: a revision comes by one path"
        raise part.bad(reason, BAD_WINDOW)
    inputs = tuple([each for n, each in enumerate(composite.inputs) if n != composite.own])
    return replace(composite, inputs=inputs, own=None, follows=True)
