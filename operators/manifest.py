"""operator.json: what a program says of itself."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from operators.errors import NotAnOperator
from servioticy.ports.programs import MAX_EVENTS, Manifest

FILE = "operator.json"
MAX_BYTES = 16_384

MEBIBYTE = 1024 * 1024
LEAST_MEMORY, MOST_MEMORY, USUAL_MEMORY = 16 * MEBIBYTE, 2048 * MEBIBYTE, 256 * MEBIBYTE
MOST_ANSWER_SECONDS, USUAL_ANSWER_SECONDS = 60.0, 10.0
MOST_WAIT_SECONDS = 5.0
MOST_PROCESSES, USUAL_PROCESSES = 64, 32
MOST_WORDS, MOST_WORD = 32, 512

FIELDS = {"name", "language", "command", "message", "batch", "state", "limits", "network"}
FIELDS |= {"warm-up"}
MOST_WARM_UP = 100
"""Events."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_AMOUNT = re.compile(r"([0-9]{1,6})(ms|s|MiB)")
_UNITS = {"ms": 0.001, "s": 1.0, "MiB": float(MEBIBYTE)}
_BYTE = re.compile(r"\(byte ([0-9]{1,9})\)")


class _WrongError(Exception):
    """A field is not what it may be."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


class Described(NamedTuple):
    """A manifest, and what only who runs the program needs to know."""

    name: str
    manifest: Manifest
    command: tuple[str, ...]
    """run in the operator's folder: the first word is a file of that, or found on the PATH"""
    message: str
    """how frames are spelt: `json` or `msgpack`"""
    network: bool = False
    """whether it asks for the machine's network, which programs of strangers do not get"""
    warm_up: tuple[bytes, ...] = ()
    """events that it has to answer before it takes over from another version, as compact JSON"""


def is_name(text: str) -> bool:
    """Tell whether a program may be called so: 1 to 63 of a-z, 0-9 and inner hyphens."""
    return _NAME.fullmatch(text) is not None


def read(content: bytes) -> Described:
    """Read operator.json. Raises NotAnOperator with the place and the reason."""
    if len(content) > MAX_BYTES:
        raise NotAnOperator(f"{FILE}: has {len(content)} bytes, {MAX_BYTES} at most")
    try:
        given = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        place = _BYTE.search(str(error))
        where = _at(content, int(place[1])) if place else ""
        raise NotAnOperator(f"{FILE}: {error}{where}") from error
    try:
        return _described(given)
    except _WrongError as wrong:
        where = _of(content, wrong.place)
        raise NotAnOperator(f"{FILE}: {wrong.place}: {wrong.reason}{where}") from wrong


def _described(given: dict[str, Any]) -> Described:
    _only(given, FIELDS, "")
    name = _text(given, "name", "")
    if not is_name(name):
        raise _WrongError("name", "1 to 63 of a-z, 0-9 and inner hyphens")
    batch = _part(given, "batch", {"max", "wait"})
    limits = _part(given, "limits", {"memory", "answer", "processes"})
    message = given.get("message", "json")
    if message not in ("json", "msgpack"):
        raise _WrongError("message", "json or msgpack")
    state = given.get("state", True)
    if not isinstance(state, bool):
        raise _WrongError("state", "true or false")
    network = given.get("network", False)
    if not isinstance(network, bool):
        raise _WrongError("network", "true or false")
    language = _text(given, "language", "other")
    if not is_name(language):
        raise _WrongError("language", "1 to 63 of a-z, 0-9 and inner hyphens")
    most = _count(batch, "batch.max", "max", MAX_EVENTS, 1000)
    memory = _amount(limits, "limits.memory", "memory", ("MiB",), USUAL_MEMORY)
    answer = _amount(limits, "limits.answer", "answer", ("ms", "s"), USUAL_ANSWER_SECONDS)
    wait = _amount(batch, "batch.wait", "wait", ("ms", "s"), 0.0)
    _between("limits.memory", memory, LEAST_MEMORY, MOST_MEMORY, "16MiB to 2048MiB")
    _between("limits.answer", answer, 0.1, MOST_ANSWER_SECONDS, "100ms to 60s")
    _between("batch.wait", wait, 0.0, MOST_WAIT_SECONDS, "0ms to 5s")
    manifest = Manifest(
        language=language,
        keeps_state=state,
        batch=most,
        wait_seconds=wait,
        answer_seconds=answer,
        memory_bytes=int(memory),
        processes=_count(limits, "limits.processes", "processes", MOST_PROCESSES, USUAL_PROCESSES),
    )
    return Described(name, manifest, _command(given), message, network, _warm_up(given, most))


def _command(given: dict[str, Any]) -> tuple[str, ...]:
    words = given.get("command")
    if not isinstance(words, list) or not 1 <= len(words) <= MOST_WORDS:
        raise _WrongError("command", f"a list of 1 to {MOST_WORDS} words")
    for word in words:
        if not isinstance(word, str) or not word or len(word) > MOST_WORD or "\0" in word:
            raise _WrongError("command", f"each word a text of 1 to {MOST_WORD} characters")
    return tuple(words)


def _warm_up(given: dict[str, Any], batch: int) -> tuple[bytes, ...]:
    events, most = given.get("warm-up", []), min(batch, MOST_WARM_UP)
    if not isinstance(events, list) or len(events) > most:
        raise _WrongError("warm-up", f"a list of at most {most} events")
    found = []
    for number, each in enumerate(events):
        where = f"warm-up.{number}"
        if not isinstance(each, dict):
            raise _WrongError(where, "an object")
        _only(each, {"stream", "timestamp", "channels"}, f"{where}.")
        stream, at, channels = each.get("stream"), each.get("timestamp", 0), each.get("channels")
        if not isinstance(stream, str):
            raise _WrongError(f"{where}.stream", "a text")
        if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < 2**63:
            raise _WrongError(f"{where}.timestamp", "a whole number from 0")
        if not isinstance(channels, dict):
            raise _WrongError(f"{where}.channels", "an object")
        event = {"stream": stream, "timestamp": at, "channels": channels}
        found.append(msgspec.json.encode(event | {"version": 0, "correlation": ""}))
    return tuple(found)


def _only(given: dict[str, Any], known: set[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise _WrongError(
                f"{where}{name[:60]}", f"there is no such field; {', '.join(sorted(known))}"
            )


def _part(given: dict[str, Any], name: str, known: set[str]) -> dict[str, Any]:
    part = given.get(name, {})
    if not isinstance(part, dict):
        raise _WrongError(name, "an object")
    _only(part, known, f"{name}.")
    return part


def _text(given: dict[str, Any], name: str, usual: str) -> str:
    text = given.get(name, usual)
    if not isinstance(text, str):
        raise _WrongError(name, "a text")
    return text


def _count(part: dict[str, Any], place: str, name: str, most: int, usual: int) -> int:
    count = part.get(name, usual)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= most:
        raise _WrongError(place, f"a whole number from 1 to {most}")
    return count


def _amount(
    part: dict[str, Any], place: str, name: str, units: tuple[str, ...], usual: float
) -> float:
    if name not in part:
        return usual
    given = part[name]
    match = _AMOUNT.fullmatch(given) if isinstance(given, str) else None
    if match is None or match[2] not in units:
        raise _WrongError(place, f"a whole number with {' or '.join(units)}")
    return int(match[1]) * _UNITS[match[2]]


def _between(place: str, amount: float, least: float, most: float, said: str) -> None:
    if not least <= amount <= most:
        raise _WrongError(place, said)


def _of(content: bytes, place: str) -> str:
    """Return where a field stands, for people; empty where there is none."""
    at = 0
    for name in place.split("."):
        if name.isdecimal():  # of a list: its items have no names
            break
        found = re.compile(rb'"%s"\s*:' % re.escape(name.encode())).search(content, at)
        if found is None:
            return ""
        at = found.start()
    return _at(content, at)


def _at(content: bytes, at: int) -> str:
    """Return the line and column of a byte, both from 1 on; a column is a character."""
    line, begin = content.count(b"\n", 0, at) + 1, content.rfind(b"\n", 0, at) + 1
    column = len(content[begin:at].decode(errors="replace")) + 1
    return f" (line {line}, column {column})"
