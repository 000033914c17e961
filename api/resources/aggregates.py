"""Aggregates of one channel over buckets of time, computed by the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import orjson
from flask import Blueprint, Response, request

from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.http.queries import choice, span
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.buckets import UNITS, BadWidth, Bucket, Fill, filled, start, width
from servioticy.domain.model import StreamKey, Timestamp
from servioticy.ports.statements import Row, Statements
from servioticy.refusals import NoStream, Refused

MAX_BUCKETS = 10_000
MAX_UPDATES = 1_000_000
"""Most that the store reads for one answer: some seconds of its time."""
FUNCTIONS = ("min", "max", "mean", "count", "first", "last")
OF_TYPE = {"number": FUNCTIONS, "boolean": ("count", "first", "last")}
OF_OTHERS = ("count",)
JSON_TYPES = {"number": ["number"], "boolean": ["boolean"], "string": ["string"]}
FILLS = ("none", "null", "previous", "linear")


class Question(NamedTuple):
    """What is asked of the store, but for the span."""

    channel: str
    type: str
    functions: tuple[str, ...]
    width: int
    fill: Fill


def blueprint(services: Services) -> Blueprint:
    """`GET /{service_object}/streams/{stream}/aggregates`."""
    routes = Blueprint("aggregates", __name__)
    stored = services.ports.statements("aggregates")

    @routes.get("/<service_object>/streams/<stream>/aggregates")
    @needs(Right.READ)
    def aggregates(stream: str, **_names: str) -> Response:
        address, key = authentication.stream()
        declared = services.definitions.stream(address, stream)
        if declared is None:
            raise NoStream
        question = _asked({each.name: each.type for each in declared.channels})
        headers = services.reads.wait(address)
        found = _span(key, stored, question)
        data = [] if found is None else _shown(_answered(key, stored, question, *found), question)
        body = {"channel": question.channel, "bucket": question.width, "data": data}
        return answer(body, 200, headers)

    return routes


def _asked(types: dict[str, str]) -> Question:
    """Return what the present request asks. Raises Refused."""
    channel = request.args.get("channel")
    if channel is None:
        raise Refused("channel has to name a channel of the stream")
    if channel not in types:
        raise Refused(f"The stream does not have a channel: {channel:.100}")
    possible = OF_TYPE.get(types[channel], OF_OTHERS)
    functions = tuple(dict.fromkeys(request.args.get("functions", ",".join(possible)).split(",")))
    for name in functions:
        if name not in possible:
            raise Refused(
                f"functions of a channel of type {types[channel]} are {', '.join(possible)}, "
                f"not {name:.100}"
            )
    fill = cast("Fill", choice("fill", FILLS))
    if fill == "linear" and types[channel] != "number":
        raise Refused("fill=linear is for channels of type number")
    return Question(channel, types[channel], functions, _width(), fill)


def _width() -> int:
    unit = request.args.get("timestamps")
    if unit is not None and unit not in UNITS:
        raise Refused(f"timestamps has to be one of {', '.join(UNITS)}")
    try:
        return width(request.args.get("bucket", ""), unit)
    except BadWidth as error:
        raise Refused(str(error)) from error


def _span(
    key: StreamKey, stored: Statements, question: Question
) -> tuple[Timestamp, Timestamp] | None:
    """Return the timestamps that the answer is about; None where nothing is stored of them.

    From the first stored to the last; empty buckets before and after them only where they are to
    be filled and the request says how far. Raises Refused where that is too many buckets.
    """
    first, last = span()
    row = stored.row("ends", **key._asdict(), **{"from": first, "to": last})
    if row is None or row[0] is None:
        return None
    if question.fill == "none" or "from" not in request.args:
        first = row[0]
    if question.fill == "none" or "to" not in request.args:
        last = row[1]
    count = last // question.width - first // question.width + 1
    if count > MAX_BUCKETS:
        raise Refused(
            f"That would be {count} buckets, and an answer has {MAX_BUCKETS} at most: ask for "
            "wider ones, or a shorter span"
        )
    return first, last


def _answered(
    key: StreamKey, stored: Statements, question: Question, first: Timestamp, last: Timestamp
) -> list[Bucket]:
    rows = stored.rows(
        "buckets",
        **key._asdict(),
        **{"from": first, "to": last},
        channel=question.channel,
        types=JSON_TYPES.get(question.type, ["string", "number", "boolean", "array"]),
        number=question.type == "number",
        ends=bool({"first", "last"} & set(question.functions)),
        width=question.width,
        most=MAX_UPDATES + 1,
    )
    if sum(rows_read for _, rows_read, *_ in rows) > MAX_UPDATES:
        raise Refused(f"The span holds more than {MAX_UPDATES} updates: ask for a shorter one")
    names = [each for each in question.functions if each != "count"]
    buckets = [_bucket(each, names) for each in rows if each[2]]
    numbers = first // question.width, last // question.width
    return list(filled(buckets, *numbers, names, question.fill))


def _bucket(row: Row, names: Sequence[str]) -> Bucket:
    number, _rows, count, low, high, mean, first, last = row
    values = {"min": low, "max": high, "mean": mean, "first": _json(first), "last": _json(last)}
    return Bucket(number, count, {name: values[name] for name in names})


def _json(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def _shown(buckets: Sequence[Bucket], question: Question) -> list[dict[str, Any]]:
    counts = "count" in question.functions
    return [
        {"start": start(each.number, question.width)}
        | ({"count": each.updates} if counts else {})
        | dict(each.values)
        for each in buckets
    ]
