"""How a JSONPath is spelled: RFC 9535 is stricter here than the library that parses paths.

The library reads `\\n` in a name as an n and takes control characters, leading zeros and
words without quotes. So a path is spelled anew before it is parsed, or it is refused.
"""

from __future__ import annotations

import json
import re

from servioticy.errors import ServioticyError

_PIECE = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[^'"]++|.""", re.DOTALL)
_NAME = re.compile(
    r"\.((?=[^\s.]*[^\x00-\x7f\s.]|[A-Za-z0-9_$]*-)[A-Za-z0-9_$\-\x80-\U0010ffff]+)"
)
_NO_NAME = r"(?<![\w.\-\x80-\U0010ffff])"
_REFUSED = {
    "a function is more than looking, which is the script's": re.compile(r"[A-Za-z0-9_]\s*\("),
    "a number has no exponent": re.compile(_NO_NAME + r"-?[0-9]+(?:\.[0-9]+)?[eE][+\-]?[0-9]"),
    "a number has no leading zero": re.compile(_NO_NAME + r"-?0[0-9]"),
    "-0 is no index": re.compile(r"[\[,:]\s*-0\s*(?=[\],:])"),
    "no blank comes after a dot": re.compile(r"\.\s"),
    "a text stands in quotes": re.compile(
        r"[=<>]\s*(?!(?:true|false|null)(?![\w\-]))[A-Za-z_\x80-\U0010ffff]"
    ),
}


class BadSpelling(ServioticyError):
    """The path is not spelled as RFC 9535 says."""


def spelled(path: str) -> str:
    """Return the same path as the library reads it rightly.

    Escapes in quotes become their characters; names with dashes or letters outside ASCII are
    put in quotes. Raises BadSpelling with the reason.
    """
    return "".join(
        _quoted(piece) if piece[0] in "'\"" else _bare(piece) for piece in _PIECE.findall(path)
    )


def _bare(text: str) -> str:
    """Return what stands outside of quotes, with names quoted where they need it."""
    for reason, pattern in _REFUSED.items():
        if pattern.search(text):
            raise BadSpelling(reason)
    return _NAME.sub(r".'\1'", text.replace("\r", " "))


def _quoted(text: str) -> str:
    """Return a quoted name or value with no escapes but those of quotes and backslashes."""
    if len(text) == 1:
        raise BadSpelling("a quotation mark has no other")
    mark = text[0]
    try:
        # JSON knows the same escapes, but \\' instead of \\" in single quotes.
        inner = text[1:-1]
        if mark == "'":
            inner = re.sub(r"""\\(.)|(")""", _as_in_json, inner, flags=re.DOTALL)
        value: str = json.loads(f'"{inner}"')
        value.encode()
    except ValueError as error:
        raise BadSpelling(f"{text} has a character or an escape that no JSON text has") from error
    return mark + re.sub(r"""(['"\\])""", r"\\\1", value) + mark


def _as_in_json(found: re.Match[str]) -> str:
    if found[2]:
        return '\\"'
    if found[1] == '"':
        raise ValueError(found[0])
    return "'" if found[1] == "'" else found[0]
