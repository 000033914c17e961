"""A text that is edited, read and given to the API: what comes of it, or all that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson

from api.console.asking import ApiRefused
from api.console.editing import Edited, NoDocument, read
from api.console.places import Problem, problem, problems

TO_BE_TOLD = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.CONFLICT,
        HTTPStatus.PRECONDITION_FAILED,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.SERVICE_UNAVAILABLE,
    }
)
"""Statuses after which the text is shown again: nobody is to lose what he has written."""


class Attempt(NamedTuple):
    """What came of it."""

    made: Any = None
    status: int = HTTPStatus.OK
    wrong: Sequence[Problem] = ()
    """each at its place in the text"""
    message: str = ""
    """what else was wrong"""


def attempted(text: str, use: Callable[[Edited], Any]) -> Attempt:
    """Return what is made of the text. Raises ApiRefused where it is not the text's fault."""
    try:
        edited = read(text)
    except NoDocument as error:
        return _bad(problem(error.reason, text, error.at))
    try:
        orjson.dumps(edited.document)
        return Attempt(use(edited))
    except (orjson.JSONEncodeError, UnicodeEncodeError):
        return _bad(problem("there is half of a character in it", text, 0))
    except ApiRefused as refused:
        if not refused.is_known or refused.status not in TO_BE_TOLD:
            raise
        is_wrong = refused.status == HTTPStatus.BAD_REQUEST
        told = problems(refused.told, edited, text) if is_wrong else []
        return Attempt(None, refused.status, told, "" if told else refused.message)


def _bad(found: Problem) -> Attempt:
    return Attempt(None, HTTPStatus.BAD_REQUEST, [found])
