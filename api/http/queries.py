"""What stands behind the question mark: numbers, choices, spans of time. Raises Refused."""

from __future__ import annotations

from collections.abc import Sequence

from flask import request

from servioticy.dates import NoDate, moment_in_address
from servioticy.domain.documents.updates import MAX_TIMESTAMP
from servioticy.domain.model import Timestamp
from servioticy.numbers import whole
from servioticy.refusals import Refused


def integer(name: str, default: int, least: int, most: int) -> int:
    """Return the parameter as a number between the two, or the default where there is none."""
    text = request.args.get(name)
    if text is None:
        return default
    found = whole(text, least, most)
    if found is None:
        raise Refused(f"{name} has to be a whole number from {least} to {most}")
    return found


def timestamp(text: str) -> Timestamp:
    """Return the place that a cursor of updates names."""
    found = whole(text, 0, MAX_TIMESTAMP)
    if found is None:
        raise Refused("The cursor does not name a timestamp")
    return found


def choice(name: str, choices: Sequence[str]) -> str:
    """Return the parameter, which is one of the choices; the first where there is none."""
    found = request.args.get(name, choices[0])
    if found not in choices:
        raise Refused(f"{name} has to be one of {', '.join(choices)}")
    return found


def moment(name: str, default: Timestamp) -> Timestamp:
    """Return the parameter as a timestamp: a number, or a date, which is milliseconds."""
    text = request.args.get(name)
    if text is None:
        return default
    try:
        return moment_in_address(text, 0, MAX_TIMESTAMP)
    except NoDate as error:
        raise Refused(f"{name} {error}") from None


def span() -> tuple[Timestamp, Timestamp]:
    """Return `from` and `to`, both inclusive; without them everything."""
    first = moment("from", 0)
    last = moment("to", MAX_TIMESTAMP)
    if first > last:
        raise Refused("from is after to")
    return first, last
