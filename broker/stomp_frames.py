"""STOMP 1.0, 1.1 and 1.2 on the wire: frames from bytes and back, destinations from topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.errors import BadTopic, Malformed, TooLarge
from broker.wire import Wire
from servioticy.numbers import whole

PREFIX = "/topic/"
MAX_HEADERS = 64
MAX_HEADER_BYTES = 16_384
_ESCAPES = {"n": "\n", "r": "\r", "c": ":", "\\": "\\"}
_UNESCAPED = frozenset({"CONNECT", "STOMP", "CONNECTED"})


class Frame(NamedTuple):
    """A frame, of the client or ours."""

    command: str
    headers: Mapping[str, str]
    body: bytes = b""

    def needed(self, name: str) -> str:
        """Return a header that has to be there. Raises Malformed."""
        try:
            return self.headers[name]
        except KeyError:
            raise Malformed(f"{self.command} needs the header {name}") from None


async def read_frame(wire: Wire, most: int) -> Frame | None:
    """Return the next frame, or None for an end of line that only shows that it lives.

    Raises Malformed.
    """
    command = await _line(wire)
    if not command:
        wire.pass_over(b"\r\n")  # a thousand of them say no more than one
        return None
    headers: dict[str, str] = {}
    count = size = 0
    while line := await _line(wire):
        count, size = count + 1, size + len(line)
        if count > MAX_HEADERS or size > MAX_HEADER_BYTES:
            raise TooLarge(f"a frame has at most {MAX_HEADERS} headers")
        name, colon, value = line.partition(":")
        if not colon:
            raise Malformed("a header has no colon")
        if command not in _UNESCAPED:
            name, value = _plain(name), _plain(value)
        headers.setdefault(name, value)  # of several the first one counts
    return Frame(command, headers, await _body(wire, headers.get("content-length"), most))


async def _line(wire: Wire) -> str:
    try:
        return (await wire.readuntil(b"\n"))[:-1].removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise Malformed("a line is not UTF-8") from error


async def _body(wire: Wire, length: str | None, most: int) -> bytes:
    if length is None:
        return (await wire.readuntil(b"\0"))[:-1]
    size = whole(length)
    if size is None:
        raise Malformed("content-length is not a number")
    if size > most:
        raise TooLarge(f"a frame has at most {most} bytes")
    body = await wire.readexactly(size + 1)
    if body[-1]:
        raise Malformed("a frame does not end where it says")
    return body[:-1]


def write_frame(command: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Return a frame as it goes over the wire."""
    write = str if command in _UNESCAPED else _escaped
    lines = [command, *(f"{write(name)}:{write(value)}" for name, value in headers.items())]
    if body:
        lines.append(f"content-length:{len(body)}")
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"


def topic_of(destination: str) -> str:
    """Return the topic of a destination: `/topic/a.b.c` is `a/b/c`. Raises BadTopic."""
    if not destination.startswith(PREFIX):
        raise BadTopic(f"A destination begins with {PREFIX}")
    name = destination.removeprefix(PREFIX)
    if "/" in name:
        return name  # names may have dots in them
    levels = name.split(".")
    return "/".join({"*": "+", "**": "#"}.get(each, each) for each in levels)


def destination_of(topic: str) -> str:
    """Return the destination of a topic."""
    return PREFIX + (topic if "." in topic else topic.replace("/", "."))


def _plain(text: str) -> str:
    if "\\" not in text:
        return text
    first, *others = text.split("\\")
    out, rest = [first], iter(others)
    for part in rest:
        if part:
            if part[0] not in _ESCAPES:
                raise Malformed("a header has an escape that there is not")
            out.append(_ESCAPES[part[0]] + part[1:])
        else:
            out.append("\\" + next(rest, ""))
    return "".join(out)


def _escaped(text: str) -> str:
    for plain, escape in (("\\", "\\\\"), ("\r", "\\r"), ("\n", "\\n"), (":", "\\c")):
        text = text.replace(plain, escape)
    return text
