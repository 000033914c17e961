"""A fold of one's own: a function that makes a state of each window, update after update."""

from __future__ import annotations

from typing import Any

from servioticy.domain.documents.code import Code, Context, Written
from servioticy.domain.documents.codes import BAD_CODE, BAD_WINDOW, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.dialects import NEWEST
from servioticy.domain.documents.errors import Part
from servioticy.domain.documents.functions import TRIGGER
from servioticy.domain.documents.windows import about
from servioticy.domain.windowed import FOLD, STATE
from servioticy.domain.windows.model import Fold, Window

MAX_FOLDED = 50
"""Windows that an update is in, where each of them is folded: so often code runs for it."""

NO_FOLD = {
    "sliding": "its windows are known only once they end, and states of a fold cannot be merged",
    "session": "two of them may become one, and states of a fold cannot be merged",
}
"""Kinds of windows that have none, and why."""


def fold_of(written: Written, content: dict[str, Any], context: Context) -> Code | None:
    """Return the fold that the stream has. Raises BadDocument where it can have none."""
    text = content.get(FOLD)
    if text is None:
        return None
    part = written.stream.at(FOLD, words=FOLD)
    if not isinstance(text, str):
        raise part.bad("has to be text", WRONG_TYPE)
    if content.get("window") is None:
        raise part.bad("is for a stream with a window", BAD_WINDOW)
    if context.dialect != "function":
        raise part.bad(f'is a function, which needs "version": "{NEWEST}"', BAD_CODE)
    if STATE in context.members:
        reason = f"its argument {STATE} is no stream or group, so none can be called so beside it"
        raise part.bad(reason, BAD_CODE)
    code = Code(text, part)
    _check_arguments(_arguments(code, context), part)
    return code


def with_state(context: Context) -> Context:
    """Return the same, with what code beside a fold may name besides."""
    return context._replace(members={**context.members, STATE: ()})


def fold_over(window: Window, code: Code, context: Context) -> Fold:
    """Return the fold of these windows. Raises BadDocument."""
    part = code.part
    if window.kind in NO_FOLD:
        raise part.bad(f"a {window.kind} window has none: {NO_FOLD[window.kind]}", BAD_WINDOW)
    if window.revisions == "discard":
        reason = "a state is of all updates of its window, so none is beside discard"
        raise part.bad(reason, BAD_WINDOW)
    if windows_of_an_update(window) > MAX_FOLDED:
        reason = (
            f"an update would be in more than {MAX_FOLDED} windows, for each of which it runs; "
            "take a longer every"
        )
        raise part.bad(reason, TOO_MUCH)
    return Fold(code.text, _arguments(code, context)[1:])


def _arguments(code: Code, context: Context) -> tuple[str, ...]:
    try:
        return context.argument_names(code.text)
    except ValueError as error:
        raise code.part.bad(str(error), BAD_CODE) from error


def _check_arguments(names: tuple[str, ...], part: Part) -> None:
    if names[:1] != (STATE,):
        raise part.bad(f"has to be a function whose first argument is {STATE}", BAD_CODE)
    if TRIGGER in names:
        raise part.bad(f"has no {TRIGGER}: name an input instead", BAD_CODE)
    if len(names) == 1:
        raise part.bad(f"has to name an input behind {STATE}", BAD_CODE)


def windows_of_an_update(window: Window) -> int:
    """Return how many windows one update is in at most."""
    if window.kind == "count":
        size, every = window.count or 1, window.every_count or window.count or 1
    elif window.size is not None and window.every is not None:
        size, every = about(window.size), about(window.every)
    else:
        return 1
    return -(-size // every)
