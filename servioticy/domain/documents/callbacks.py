"""Subscriptions as applications send them: which callbacks there are, and what each needs."""

from __future__ import annotations

import re
from typing import Any

import orjson

from servioticy.dates import NoDate, milliseconds
from servioticy.domain.documents.codes import NO_CHOICE, REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE, BadDocument, Part
from servioticy.domain.documents.spelling import SUBSCRIPTION, check_keys
from servioticy.domain.message_topics import resembles
from servioticy.domain.webhook_secrets import BadSecret, key_of

KINDS = ("pubsub", "websocket", "http", "service", "pull")
DURABLE = frozenset({"pubsub", "http", "service", "pull"})
"""Those whose updates wait for them, from where they say."""
FORMATS = ("plain", "cloudevents", "cloudevents-binary")
LATEST, BEGINNING = "latest", "beginning"
MAX_DESTINATION = 1_000
MAX_BYTES = 32_768
"""Of all that a subscription holds."""
MAX_HEADERS = 50
MAX_ALIASES = 200

_BEGINNINGS = f'"{LATEST}", "{BEGINNING}", a lastUpdate or offsets'
_ADDRESS = re.compile(
    r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*)|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:[/?#][^\s\x00-\x20\x7f]*)?",
    re.IGNORECASE,
)
"""Whom to call stands in it as it is: nothing is put there from an update, and no password."""
_PARTITION = re.compile(r"0|[1-9][0-9]{0,5}")
_METHOD = re.compile(r"[A-Za-z]{1,20}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_subscription(wanted: dict[str, Any]) -> str:
    """Return the callback of a subscription as it was sent. Raises BadDocument.

    A pubsub subscription may be without a destination.
    """
    check_keys(wanted, SUBSCRIPTION, WHOLE)
    callback = wanted.get("callback")
    if callback is None:
        raise BadDocument("No callback in the request", "", REQUIRED)
    place = WHOLE.at("callback")
    if callback == "internal":
        reason = (
            "A subscription of a composite follows from its document: name the stream in one of "
            "its groups"
        )
        raise place.bad(reason, NO_CHOICE)
    if not isinstance(callback, str) or callback not in KINDS:
        reason = f"The callback {callback!s:.100} is not one of {', '.join(KINDS)}"
        raise place.bad(reason, NO_CHOICE)
    _check_destination(wanted.get("destination"), callback)
    if callback == "http":
        _check_call(wanted.get("customFields"))
    if callback in DURABLE and "expire" in wanted:
        wanted["expire"] = _end(wanted["expire"])
    # Also where they change nothing: who writes them has meant something.
    _check_form(wanted)
    _check_beginning(wanted)
    if len(orjson.dumps(wanted)) > MAX_BYTES:
        reason = f"A subscription holds at most {MAX_BYTES} bytes"
        raise WHOLE.bad(reason, TOO_MUCH)
    return callback


def _check_destination(destination: Any, callback: str) -> None:
    place = WHOLE.at("destination")
    if destination is None:
        if callback in ("http", "service"):
            raise BadDocument("No destination in the request", "", REQUIRED)
        return
    if not isinstance(destination, str) or len(destination) > MAX_DESTINATION:
        reason = f"destination has to be text of at most {MAX_DESTINATION} characters"
        raise place.bad(reason, WRONG_TYPE)
    if _CONTROL.search(destination):
        raise place.bad("destination has a control character in it", WRONG_TYPE)
    if callback in ("pubsub", "service") and resembles(destination):
        reason = (
            "destination resembles a topic of the platform: updates, errors and claims as its "
            "first part, and actions, actuations, from and to as its second, have a meaning of "
            "their own; choose another name"
        )
        raise place.bad(reason, NO_CHOICE)
    if callback == "http":
        found = _ADDRESS.fullmatch(destination)
        if found is None or not 0 < int(found["port"] or 80) < 65_536:
            reason = (
                "destination has to be an address such as http://host:port/path, its host "
                "without a user, an alias or a reference"
            )
            raise place.bad(reason, WRONG_TYPE)


def _check_call(fields: Any) -> None:
    """Raise BadDocument unless it says how to call: aliases, method, headers, body."""
    place = WHOLE.at("customFields")
    if fields is None:
        return
    if not isinstance(fields, dict):
        raise place.bad("customFields has to be a JSON object", WRONG_TYPE)
    method, body = fields.get("method"), fields.get("body")
    if method is not None and not (isinstance(method, str) and _METHOD.fullmatch(method)):
        raise place.at("method").bad("method has to be letters, at most 20", WRONG_TYPE)
    if body is not None and not isinstance(body, str):
        raise place.at("body").bad("body has to be text", WRONG_TYPE)
    _check_texts(fields.get("headers"), place.at("headers"), "headers", MAX_HEADERS)
    aliases = fields.get("aliases")
    if isinstance(aliases, list) and len(aliases) <= MAX_ALIASES:
        for number, each in enumerate(aliases):
            _check_texts(each, place.at("aliases", number), "aliases", MAX_ALIASES)
    else:
        _check_texts(aliases, place.at("aliases"), "aliases", MAX_ALIASES)


def _check_form(wanted: dict[str, Any]) -> None:
    """Raise BadDocument unless format and secret are what they may be."""
    if wanted.get("format", FORMATS[0]) not in FORMATS:
        raise WHOLE.at("format").bad(f"format has to be one of {', '.join(FORMATS)}", NO_CHOICE)
    secret = wanted.get("secret")
    if secret is not None:
        try:
            key_of(secret if isinstance(secret, str) else "")
        except BadSecret as error:
            raise WHOLE.at("secret").bad(str(error), WRONG_TYPE) from None


def _check_beginning(wanted: dict[str, Any]) -> None:
    """Raise BadDocument unless it begins where a subscription can."""
    begin = wanted.get("from", LATEST)
    if isinstance(begin, str) and begin not in (LATEST, BEGINNING):
        begin = wanted["from"] = _date(begin)
    is_time = isinstance(begin, int) and not isinstance(begin, bool) and 0 <= begin < 2**63
    if isinstance(begin, dict):
        _check_offsets(begin)
    elif not is_time and begin not in (LATEST, BEGINNING):
        raise WHOLE.at("from").bad(f"from has to be {_BEGINNINGS}", WRONG_TYPE)


def _date(begin: str) -> int:
    """Return the milliseconds that a date stands for. Raises BadDocument."""
    try:
        return milliseconds(begin, _BEGINNINGS)
    except NoDate as error:
        raise WHOLE.at("from").bad(f"from {error}", WRONG_TYPE) from None


def _check_offsets(begin: dict[str, Any]) -> None:
    """Raise BadDocument unless it tells a place as subscriptions tell theirs."""
    offsets = begin.get("offsets")
    place = WHOLE.at("from", "offsets")
    if not isinstance(offsets, dict) or not offsets or begin.keys() != {"offsets"}:
        raise place.bad("from has offsets by partition, and nothing else", WRONG_TYPE)
    for partition, offset in offsets.items():
        is_number = isinstance(offset, int) and not isinstance(offset, bool)
        if not _PARTITION.fullmatch(partition) or not is_number or not 0 <= offset < 2**63:
            reason = "An offset is a whole number, its partition one, too"
            raise place.at(partition).bad(reason, WRONG_TYPE)


def offsets_from(wanted: dict[str, Any]) -> dict[int, int] | None:
    """Return the places of the topic by partition from which updates are wanted, if any are."""
    begin = wanted.get("from")
    if not isinstance(begin, dict):
        return None
    return {int(partition): offset for partition, offset in begin["offsets"].items()}


def history_after(wanted: dict[str, Any]) -> int | None:
    """Return after which timestamp the history is wanted; None: nothing of it."""
    begin = wanted.get("from", LATEST)
    if begin == BEGINNING:
        return -1
    return begin - 1 if isinstance(begin, int) else None


def _end(expire: Any) -> int:
    """Return when it ends; a date is milliseconds. Raises BadDocument unless it is a time."""
    if isinstance(expire, str):
        try:
            return milliseconds(expire, "milliseconds since 1970, or 0 for never")
        except NoDate as error:
            raise WHOLE.at("expire").bad(f"expire {error}", WRONG_TYPE) from None
    if not isinstance(expire, int) or isinstance(expire, bool) or not 0 <= expire < 2**63:
        reason = "expire has to be milliseconds since 1970, or 0 for never"
        raise WHOLE.at("expire").bad(reason, WRONG_TYPE)
    return expire


def expires_at(document: dict[str, Any]) -> int | None:
    """Return when a subscription ends, in milliseconds since 1970; None: never."""
    expire = document.get("expire")
    is_time = document["callback"] in DURABLE and isinstance(expire, int)
    return expire if is_time and expire else None


def _check_texts(content: Any, place: Part, what: str, most: int) -> None:
    """Raise BadDocument unless it is a map of text to text, in which no line ends."""
    if content is None:
        return
    if not isinstance(content, dict) or len(content) > most:
        raise place.bad(f"{what} has to map text to text, at most {most} of them", WRONG_TYPE)
    for name, text in content.items():
        if not isinstance(text, str) or _CONTROL.search(name + text):
            reason = f"{what} has to map text to text without control characters"
            raise place.at(name).bad(reason, WRONG_TYPE)
