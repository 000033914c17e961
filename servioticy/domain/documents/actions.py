"""What composite streams ask for when they emit: actions, under a condition, with parameters.

A condition is understood as a composite stream of its own that reads the output: so it is code
like any other, and runs where all code of tenants runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from servioticy.domain.actuations import MAX_PARAMETERS, MAX_TIMEOUT, is_timeout
from servioticy.domain.documents.aliases import size
from servioticy.domain.documents.callbacks import check_subscription
from servioticy.domain.documents.code import Code, Context, Written
from servioticy.domain.documents.codes import (
    REQUIRED,
    TOO_MUCH,
    TOO_SLOW,
    UNKNOWN_ACTION,
    UNKNOWN_SOURCE,
    WRONG_TYPE,
)
from servioticy.domain.documents.composites import MAX_CODE
from servioticy.domain.documents.errors import WHOLE, BadDocument, Part
from servioticy.domain.documents.expressions import parse_expressions
from servioticy.domain.documents.limits import MAX_TEXT, Laborious, Meter
from servioticy.domain.documents.service_objects import ArgumentNames, context_of
from servioticy.domain.model import Channel, Composite, Input, StreamRef
from servioticy.domain.pauses import finished

OUTPUT = "output"
"""What a condition calls the update that its stream has emitted: `{$output}` in expressions, the
variable `$output` where code is functions."""
CALLBACK = "actuationCallback"
"""The member of a document that names whom to call with actuations."""
CALLBACK_MEMBERS = frozenset({"destination", "format", "customFields"})
MOST = 100
"""In one document."""
MOST_SHARE = 0.1
"""Of what one document may take to read: so much all of them may take."""


class AskedAction(NamedTuple):
    """What a composite stream asks for each time it emits."""

    action: str
    service_object: str
    """Whose device is to do it."""
    condition: Composite | None
    """A composite with one input, the output, that emits when the condition holds."""
    parameters: Any
    """A text, or any JSON, with references into the output."""
    part: Part
    """Where it stands."""


def actions_of(
    document: dict[str, Any], ref: StreamRef, argument_names: ArgumentNames
) -> list[AskedAction]:
    """Return what a composite stream of a document asks for. Raises BadDocument."""
    return [asked for _, asked in _read(document, [ref], argument_names)]


def check_actions(
    document: dict[str, Any], service_object: str, argument_names: ArgumentNames
) -> list[tuple[StreamRef, AskedAction]]:
    """Return all that the streams of a document ask for, which was understood without that.

    Raises BadDocument with the place.
    """
    actions = document.get("actions") or ()
    for number, action in enumerate(actions):
        if "timeout" in action and not is_timeout(action["timeout"]):
            place = WHOLE.at("actions", number, "timeout", words=f"action {action['name']:.40}")
            reason = f"timeout has to be a whole number of seconds from 1 to {MAX_TIMEOUT}"
            raise place.bad(reason, WRONG_TYPE)
    _check_callback(document.get(CALLBACK))
    declared = {each["name"] for each in actions}
    refs = [StreamRef(service_object, name) for name in document["streams"]]
    found = _read(document, refs, argument_names)
    for _, each in found:
        if each.service_object == service_object and each.action not in declared:
            reason = f"this Service Object does not have the action {each.action!r:.60}"
            raise each.part.at("action").bad(reason, UNKNOWN_ACTION)
    return found


def _check_callback(content: Any) -> None:
    """Raise BadDocument unless it says whom to call, as a subscription by HTTP does."""
    place = WHOLE.at(CALLBACK, words=CALLBACK)
    if content is None:
        return
    if not isinstance(content, dict) or content.keys() - CALLBACK_MEMBERS:
        members = ", ".join(sorted(CALLBACK_MEMBERS))
        raise place.bad(f"has to be a JSON object with {members}", WRONG_TYPE)
    try:
        check_subscription({"callback": "http", **content})
    except BadDocument as error:
        pointer = place.pointer + error.pointer
        raise BadDocument(f"{CALLBACK}: {error.reason}", pointer, error.code) from error


def acting_streams(document: dict[str, Any]) -> list[str]:
    """Return the composite streams of an accepted document that ask for anything."""
    streams = document.get("streams")
    found = streams.items() if isinstance(streams, dict) else ()
    return [name for name, content in found if _asks(content) and content["actions"] != []]


def _read(
    document: dict[str, Any], refs: Iterable[StreamRef], argument_names: ArgumentNames
) -> list[tuple[StreamRef, AskedAction]]:
    acting = [each for each in refs if _asks(document["streams"][each.stream])]
    if not acting:
        return []
    found: list[tuple[StreamRef, AskedAction]] = []
    try:
        context = finished(context_of(document, argument_names, Meter(MOST_SHARE)))
        for ref in acting:
            found += [(ref, each) for each in _of_stream(document, ref, context)]
            if len(found) > MOST:
                raise _part(ref.stream).bad(f"more than {MOST} of them in one document", TOO_MUCH)
    except Laborious:
        reason = "aliases and conditions take too long to understand"
        raise _part(acting[0].stream).bad(reason, TOO_SLOW) from None
    return found


def _of_stream(
    document: dict[str, Any], ref: StreamRef, context: Context
) -> Iterator[AskedAction]:
    actions, whole = document["streams"][ref.stream]["actions"], _part(ref.stream)
    if not isinstance(actions, list) or not all(isinstance(each, dict) for each in actions):
        raise whole.bad("has to be an array of objects, each with an action", WRONG_TYPE)
    for number, each in enumerate(actions[: MOST + 1]):
        yield _action(each, ref, whole.at(number, words=f"action {number}"), context)


def _asks(content: Any) -> bool:
    """Tell whether a stream is a composite that asks for anything."""
    return isinstance(content, dict) and content.get("actions") is not None and _computes(content)


def _computes(content: dict[str, Any]) -> bool:
    channels = content.get("channels")
    return isinstance(channels, dict) and any(
        isinstance(each, dict) and each.get("current-value") is not None
        for each in channels.values()
    )


def _part(stream: str) -> Part:
    return WHOLE.at("streams", stream, words=f"stream {stream}").at("actions", words="actions")


def _action(content: dict[str, Any], ref: StreamRef, part: Part, context: Context) -> AskedAction:
    if "action" not in content:
        raise part.bad("without the name of an action", REQUIRED)
    target = content.get("serviceObject", ref.service_object)
    for name, value in (("action", content["action"]), ("serviceObject", target)):
        if not isinstance(value, str) or "\0" in value:
            raise part.at(name, words=name).bad("has to be text", WRONG_TYPE)
    parameters = content.get("parameters", "")
    if len(orjson.dumps(parameters)) > MAX_PARAMETERS:
        reason = f"more than {MAX_PARAMETERS} bytes"
        raise part.at("parameters", words="parameters").bad(reason, TOO_MUCH)
    condition, place = content.get("if"), part.at("if", words="if")
    if condition is None:
        return AskedAction(content["action"], target, None, parameters, part)
    if not isinstance(condition, str):
        raise place.bad("has to be text", WRONG_TYPE)
    if size(condition) > MAX_CODE:
        raise place.bad(f"more than {MAX_CODE} bytes of code in one place", TOO_MUCH)
    understood = _condition(Code(condition, place), ref, context)
    return AskedAction(content["action"], target, understood, parameters, part)


def _condition(code: Code, ref: StreamRef, context: Context) -> Composite:
    if context.dialect == "function":
        context.meter.count(MAX_TEXT, size(code.text), code.part)
        inputs = (Input(f"${OUTPUT}", (ref,)),)
        channels = (Channel("holds", "boolean", None, "function(){return true}"),)
        return Composite("function", inputs, channels, None, code.text)
    context = context._replace(members={OUTPUT: (ref,)})
    written = Written(ref, code.part, [Code("true", code.part)], code, None)
    try:
        parsed = finished(parse_expressions(written, context))
    except BadDocument as error:
        if error.code != UNKNOWN_SOURCE:
            raise
        reason = "names something else than {$output}, the update that was emitted"
        raise code.part.bad(reason, UNKNOWN_SOURCE) from error
    return Composite(
        "expression",
        (Input(OUTPUT, (ref,)),),
        (Channel("holds", "boolean", None, parsed.channels[0]),),
        None,
        parsed.pre_filter,
        references=parsed.references,
    )
