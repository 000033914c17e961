"""Reading JavaScript text without an engine: blanks, comments and argument names.

Only what must be known before V8 sees the code. Nothing here backtracks, because the
text is a tenant's.
"""

from __future__ import annotations

import re

IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_FUNCTION = re.compile(r"function(?![A-Za-z0-9_$])")
_BLANK = re.compile(r"[\s\ufeff]*")
_PLAIN = re.compile(
    r"\(\s*+((?:[A-Za-z_$][A-Za-z0-9_$]*+\s*+,\s*+)*+(?:[A-Za-z_$][A-Za-z0-9_$]*+)?+)\s*+\)"
)
"""Arguments with nothing between them but blanks and commas."""


def well_formed(text: str) -> str:
    """Return the text with U+FFFD for each half of a surrogate pair that is alone."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def normal_type(name: str) -> str:
    """Return a channel's type as the runner knows it: in lower case, without spaces."""
    return "".join(name.split()).lower()


def skip_blank(text: str, at: int = 0) -> int:
    """Return the first position from `at` that is neither white space nor in a comment."""
    while True:
        at = _matched_end(_BLANK, text, at)
        if text.startswith("//", at):
            end = text.find("\n", at)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            end = end + 2 if end >= 0 else end
        else:
            return at
        if end < 0:
            return len(text)
        at = end


def without_end(text: str) -> str | None:
    """Return the text before a closing `;` that only blanks and comments follow, else None."""
    shorter = None
    at = _last_end(text)
    while at >= 0:
        shorter = text = text[:at]
        at = _last_end(text)
    return shorter


def _last_end(text: str) -> int:
    at = len(text)
    for _ in range(8):  # a comment after the `;` may hold some of its own
        at = text.rfind(";", 0, at)
        if at < 0 or skip_blank(text, at + 1) == len(text):
            return at
    return -1


def argument_names(code: str) -> tuple[str, ...]:
    """Return the argument names of `function(A, g) {...}`, `(A, g) => ...` or `A => ...`.

    Raises ValueError, naming the reason, for anything that is not such a function or
    whose arguments are not plain names.
    """
    at = skip_blank(code)
    keyword = _FUNCTION.match(code, at)
    if keyword:
        at = skip_blank(code, keyword.end())
        at = skip_blank(code, _matched_end(IDENTIFIER, code, at))
    else:
        name = IDENTIFIER.match(code, at)
        if name:
            _expect(code, skip_blank(code, name.end()), "=>")
            return (name.group(),)
    names, at = _parameters(code, at)
    if not keyword:
        _expect(code, skip_blank(code, at), "=>")
    return names


def _parameters(code: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the names between parentheses, and the position after them."""
    plain = _PLAIN.match(code, at)
    if plain:
        found = [each.strip() for each in plain[1].split(",")]
        return tuple(found if found[-1] else found[:-1]), plain.end()
    _expect(code, at, "(")
    names: list[str] = []
    at = skip_blank(code, at + 1)
    while not code.startswith(")", at):
        name = IDENTIFIER.match(code, at)
        if not name:
            raise ValueError("the arguments must be plain names")
        names.append(name.group())
        at = skip_blank(code, name.end())
        if code.startswith(",", at):
            at = skip_blank(code, at + 1)
        elif not code.startswith(")", at):
            raise ValueError("the arguments must be plain names")
    return tuple(names), at + 1


def _matched_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _expect(code: str, at: int, token: str) -> None:
    if not code.startswith(token, at):
        raise ValueError("must be a function, `function(A, B) {...}` or `(A, B) => ...`")
