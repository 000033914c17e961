"""Persons: whoever an issuer of tokens calls by a name that it gives to nobody else."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import orjson

MAX_ISSUER = 500
MAX_SUBJECT = 255
"""Characters; OpenID Connect gives a subject no more."""


class Person(NamedTuple):
    """A person of an issuer. Two issuers may call different persons the same."""

    issuer: str
    subject: str

    @property
    def digest(self) -> bytes:
        """The SHA-256 that stands for the person where one thing of fixed length is needed."""
        return hashlib.sha256(orjson.dumps([self.issuer, self.subject])).digest()


def is_name(text: object, most: int) -> bool:
    """Tell whether it is text that may name an issuer or a subject: short, and printable."""
    return isinstance(text, str) and 0 < len(text) <= most and text.isprintable()
