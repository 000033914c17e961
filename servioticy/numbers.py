"""Whole numbers as clients write them: decimal digits of ASCII, and no more of them than fit.

`str.isdigit` says yes to `²` and `int` no; `int` says yes to other scripts' digits, to
underscores and to spaces, and no to 5,000 digits. So no text of a client goes to either but here.
"""

from __future__ import annotations

import re

LARGEST = 2**63 - 1
MAX_DIGITS = 19
"""Of the largest; so many are read, leading zeros included."""

_WHOLE = re.compile(r"-?[0-9]{1,19}")
_WHOLE_BYTES = re.compile(rb"-?[0-9]{1,19}")


def whole(text: str | bytes, least: int = 0, most: int = LARGEST) -> int | None:
    """Return the number that a text is, or None where it is none from `least` to `most`.

    Only where `least` is below 0 may it begin with a minus. What it costs is bounded, however
    long the text is.
    """
    found = _WHOLE_BYTES.fullmatch(text) if isinstance(text, bytes) else _WHOLE.fullmatch(text)
    if found is None:
        return None
    is_signed = text[:1] in ("-", b"-")
    if is_signed and least >= 0:
        return None
    number = int(text)
    return number if least <= number <= most else None
