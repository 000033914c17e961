"""What a client of the broker may do wrong, in words for that client.

What it may not do is refused as everywhere in delivery (`delivery/admission/refusals.py`).
"""

from __future__ import annotations


class Malformed(Exception):
    """What a client sent is not what its protocol allows; its connection ends."""


class TooLarge(Malformed):
    """A packet or frame is larger than it may be."""


class BadTopic(Exception):
    """A topic that nobody can publish to, or subscribe to."""


MAX_REASON = 200
"""Characters of what a protocol tells of an error."""


def visible(why: str) -> str:
    """Return a reason as it may stand on the wire: a tenant's word in it may have a NUL."""
    return "".join(each if each.isprintable() else " " for each in why[:MAX_REASON])
