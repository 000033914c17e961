"""Claim codes: short secrets for which a device that has no token yet gets one.

A code is 20 letters, 100 bits, as people can read and type it: `7K3QM-...`. However many codes
there are, and however fast somebody tries, nobody guesses one: with ten million of them and ten
thousand tries a second it takes 4 * 10^11 years on average. From the SHA-256 that is kept of it
a machine that tries 10^12 a second finds the first of ten million in 4,000 years.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from servioticy.domain.documents.codes import REQUIRED, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.tokens import token_of

LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Douglas Crockford's: without I, L, O and U, which are taken for others."""
LENGTH, GROUP = 20, 5
_TAKEN_FOR = str.maketrans("ILO", "110", "- ")
MAX_TEXT = 200
LEAST_KEY = 16


@dataclass(frozen=True, slots=True)
class Claim:
    """What a device says of itself to get a token."""

    code: str
    """Its letters, without what people write between them."""
    device: str
    """What tells it from others of its kind, such as a serial number."""
    key: str
    """A secret that it has made up: who sends the same again is the same device."""
    parameters: Any

    def token(self, salt: bytes) -> str:
        """Return the token that it gets for this; the same for the same, however often it asks.

        So a device whose answer was lost can ask again, and tokens are stored nowhere. The
        salt keeps those who know the code from guessing at keys that are no good secrets.
        """
        asked = f"{self.code}\0{self.device}\0{self.key}".encode()
        return token_of(hmac.digest(salt, asked, "sha256"))


def new_code() -> str:
    """Return a code that nobody can guess."""
    letters = [secrets.choice(LETTERS) for _ in range(LENGTH)]
    return "-".join("".join(letters[at : at + GROUP]) for at in range(0, LENGTH, GROUP))


def read_code(text: str) -> str | None:
    """Return the letters of a code as somebody has typed it; None: it cannot be one."""
    letters = text.upper().translate(_TAKEN_FOR)
    is_one = len(letters) == LENGTH and all(each in LETTERS for each in letters)
    return letters if is_one else None


def read_claim(sent: dict[str, Any]) -> Claim:
    """Return what a device has sent. Raises BadDocument."""
    code = read_code(_text(sent, "code", 1))
    if code is None:
        reason = f"A code has {LENGTH} letters and digits, such as {'-'.join(['7K3QM'] * 4)}"
        raise WHOLE.at("code").bad(reason, WRONG_TYPE)
    key = _text(sent, "key", LEAST_KEY)
    return Claim(code, read_device(sent), key, sent.get("parameters", {}))


def read_device(sent: dict[str, Any]) -> str:
    """Return what tells a device from others. Raises BadDocument."""
    return _text(sent, "device", 1)


def fits(device: str, pattern: str) -> bool:
    """Tell whether the name of a device fits a pattern, in which `*` and `?` are any letters."""
    return fnmatchcase(device, pattern.replace("[", "[[]"))


def is_name(text: object) -> bool:
    """Tell whether it may be what tells a device from others, or a pattern of that."""
    return isinstance(text, str) and 1 <= len(text) <= MAX_TEXT and text.isprintable()


def _text(sent: dict[str, Any], name: str, least: int) -> str:
    if name not in sent:
        raise WHOLE.bad(f"A claim has to have a {name}", REQUIRED)
    text: str = sent[name]
    if not is_name(text) or len(text) < least:
        reason = f"{name} has to be text of {least} to {MAX_TEXT} visible characters"
        raise WHOLE.at(name).bad(reason, WRONG_TYPE)
    return text
