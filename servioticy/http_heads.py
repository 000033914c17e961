"""The head of an HTTP/1.1 request, taken to the letter: what is odd is refused.

A proxy in front and we have to agree where a request ends; so nothing is guessed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

MAX_HEAD = 16_384
"""Bytes of request line and headers together."""
MAX_HEADERS = 100
MALFORMED_LINE = "The request line is malformed"

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])")
_HEADER = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]++):[ \t]*+([\x21-\x7e\x80-\xff]?[\t\x20-\x7e\x80-\xff]*+)"
)
"""Nothing is tried twice: blanks before a value could be taken for its beginning as well."""
_BEGIN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}(?: |\Z)")
_ABSOLUTE = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,18}")


class Malformed(Exception):
    """The request cannot be understood; its status, and why in a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Head:
    """What a request says before its body."""

    method: str
    path: str
    """decoded, its bytes as Latin-1 characters: what WSGI calls PATH_INFO"""
    query: str
    headers: dict[str, str]
    """by WSGI's names, `HTTP_AUTHORIZATION`; what comes twice is joined by commas"""
    length: int
    """of the body in bytes; 0 where there is none or it comes in chunks"""
    chunked: bool
    keeps_alive: bool
    http_1_0: bool

    @property
    def expects(self) -> bool:
        """Whether the client waits for `100 Continue` before it sends the body."""
        return self.headers.get("HTTP_EXPECT", "").lower() == "100-continue" and not self.http_1_0


def is_a_beginning(first: bytes) -> bool:
    """Tell whether a request may begin so; these are its first bytes, perhaps none."""
    return _BEGIN.match(first.lstrip(b"\r\n")) is not None


def parse(head: bytes) -> Head:
    """Read a head, without the empty line that ends it. Raises Malformed."""
    first, *lines = head.split(b"\r\n")
    request = _LINE.fullmatch(first)
    if request is None:
        raise Malformed(400, MALFORMED_LINE)
    if len(lines) > MAX_HEADERS:
        raise Malformed(431, f"There are more than {MAX_HEADERS} headers")
    headers = _headers(lines)
    http_1_0 = request[3] == b"0"
    if "HTTP_HOST" not in headers and not http_1_0:
        raise Malformed(400, "There is no Host header")
    path, query = _target(request[2])
    chunked = _is_chunked(headers, http_1_0)
    return Head(
        method=request[1].decode("ascii"),
        path=path,
        query=query,
        headers=headers,
        length=_length(headers),
        chunked=chunked,
        keeps_alive=_keeps_alive(headers.get("HTTP_CONNECTION", ""), http_1_0),
        http_1_0=http_1_0,
    )


def _headers(lines: list[bytes]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise Malformed(400, "A header is malformed")
        if b"_" in header[1]:
            continue  # would be taken for the one with a hyphen
        name = "HTTP_" + header[1].decode("ascii").upper().replace("-", "_")
        value = header[2].rstrip(b" \t").decode("latin-1")
        if name not in found:
            found[name] = value
        elif name in ("HTTP_HOST", "HTTP_AUTHORIZATION", "HTTP_TRANSFER_ENCODING"):
            raise Malformed(400, "A header that may come once comes twice")
        else:
            found[name] += f",{value}"
    return found


def _target(target: bytes) -> tuple[str, str]:
    if target == b"*":
        target = b"/"
    elif not target.startswith(b"/"):
        absolute = _ABSOLUTE.match(target)
        if absolute is None:
            raise Malformed(400, "The address of the request is malformed")
        target = target[absolute.end() :]
        target = target if target.startswith(b"/") else b"/" + target
    path, _, query = target.partition(b"?")
    if b"%" in path:
        path = unquote_to_bytes(path)
    return path.decode("latin-1"), query.decode("latin-1")


def _is_chunked(headers: dict[str, str], http_1_0: bool) -> bool:
    encoding = headers.get("HTTP_TRANSFER_ENCODING")
    if encoding is None:
        return False
    if encoding.lower() != "chunked":
        raise Malformed(501, "Of the transfer encodings only chunked is understood")
    if http_1_0 or "HTTP_CONTENT_LENGTH" in headers:
        raise Malformed(400, "The length of the body is not clear")
    return True


def _length(headers: dict[str, str]) -> int:
    value = headers.get("HTTP_CONTENT_LENGTH", "0").encode("latin-1")
    if _LENGTH.fullmatch(value) is None:
        raise Malformed(400, "The Content-Length is not a number")
    return int(value)


def _keeps_alive(connection: str, http_1_0: bool) -> bool:
    if not connection:
        return not http_1_0
    options = {each.strip() for each in connection.lower().split(",")}
    return "keep-alive" in options if http_1_0 else "close" not in options
