"""A composite stream whose code reads windows of its inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from servioticy.domain.documents.code import Code, Context, Written
from servioticy.domain.documents.codes import BAD_WINDOW, TOO_MUCH
from servioticy.domain.documents.durations import milliseconds
from servioticy.domain.documents.folds import fold_over
from servioticy.domain.documents.functions import TRIGGER
from servioticy.domain.documents.options import FIELDS
from servioticy.domain.documents.windows import parse_window
from servioticy.domain.model import Composite
from servioticy.domain.windowed import STATE
from servioticy.domain.windows.model import Silence

WINDOW = "window"
"""The key of a stream under which it has one."""

SILENT = "silent"
"""The key under which a stream has after how long its inputs are silent."""

LEAST_SILENCE = 1000
"""Milliseconds."""

MAX_INPUTS = 16
"""Of a stream over windows."""

MAX_ASPECTS = 8
"""Inputs times channels by whose values there are aggregates: as many entries change at once."""


def given(content: dict[str, Any]) -> list[str]:
    """Return which of the keys a stream has by which its code does not read single updates."""
    return [key for key in (WINDOW, SILENT) if content.get(key) is not None]


def over_windows(
    composite: Composite,
    content: dict[str, Any],
    written: Written,
    context: Context,
    when: str | None = None,
) -> Composite:
    """Return the same composite over the windows that the stream has. Raises BadDocument.

    Its own last output is no window, and is not read. `when` is the code that says when they come
    out, as it was understood.
    """
    stream = written.stream
    key, *others = given(content)
    part = stream.at(key, words=key)
    if others:
        raise part.bad(f"there is {others[0]}, too: a stream has one of them", BAD_WINDOW)
    for field in FIELDS:
        if field.encode_name in content:
            reason = f"has no meaning beside {key}"
            raise stream.at(field.encode_name, words=field.encode_name).bad(reason, BAD_WINDOW)
    inputs = tuple(
        [
            each
            for n, each in enumerate(composite.inputs)
            if n != composite.own and (written.fold is None or each.name != STATE)
        ]
    )
    named = named_by(composite, written, context)
    if composite.own is not None and composite.inputs[composite.own].name in named:
        own = composite.inputs[composite.own].name
        raise part.bad(f"code beside it cannot read {own!r}, its own output", BAD_WINDOW)
    if TRIGGER in named:
        raise part.bad(f"code beside it has no {TRIGGER}: name an input instead", BAD_WINDOW)
    if not inputs:
        raise part.bad("code beside it has to read an input", BAD_WINDOW)
    if len(inputs) > MAX_INPUTS:
        raise part.bad(f"code beside it reads at most {MAX_INPUTS} inputs", TOO_MUCH)
    if key == SILENT:
        silence = Silence(milliseconds(content[key], part, LEAST_SILENCE))
        return replace(composite, inputs=inputs, own=None, window=silence)
    window = parse_window(stream, content[WINDOW], [each.text for each in _asking(written)])
    window = replace(window, when=when)
    if len(inputs) * len(window.uses.by) > MAX_ASPECTS:
        reason = f"inputs times channels that `by` names are at most {MAX_ASPECTS}"
        raise part.bad(reason, TOO_MUCH)
    if written.fold is not None:
        window = replace(window, fold=fold_over(window, written.fold, context))
    return replace(composite, inputs=inputs, own=None, window=window)


def _asking(written: Written) -> list[Code]:
    """All code that windows are asked by."""
    return written.codes if written.when is None else [*written.codes, written.when]


def named_by(composite: Composite, written: Written, context: Context) -> set[str]:
    """Return what its code names as inputs."""
    if composite.dialect == "expression":
        return {each.source for each in composite.references}
    codes = [*written.channels, written.fold] if written.fold is not None else written.channels
    return {name for each in codes for name in context.argument_names(each.text)}
