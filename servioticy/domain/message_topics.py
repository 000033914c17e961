"""Topics of messages: which of them mean something to the platform, so that no tenant's text may.

A device's actuations stand below its id, a token's answers below the token, both of them names
that anybody of the tenant may write. So it is what follows the first part that is the platform's,
whatever that first part is, and some first parts.
"""

from __future__ import annotations

from urllib.parse import unquote

UPDATES, ERRORS, CLAIMS = "updates", "errors", "claims"
ACTIONS, ACTUATIONS = "actions", "actuations"
FROM, TO = "from", "to"
DESTINATIONS = "destinations"
"""Stands before a destination that resembles a topic of the platform, of a subscription that was
made when that was allowed."""

_FIRST = frozenset({UPDATES, ERRORS, CLAIMS})
_SECOND = frozenset({ACTIONS, ACTUATIONS, FROM, TO})


def resembles(destination: str) -> bool:
    """Tell whether a destination of a tenant is, or could be read as, a topic of the platform.

    Parts end at `/` in MQTT, and at `.` in STOMP and in some brokers; a part, and what ends it,
    may be written as in a URL. A wildcard stands for any part.
    """
    if not destination or destination[0] in "/.$":
        return True
    return any(_is_read_so(each) for each in (destination, unquote(destination)))


def _is_read_so(destination: str) -> bool:
    return any(_means_something(destination.split(mark)) for mark in "/.") or _means_something(
        destination.replace(".", "/").split("/")
    )


def _means_something(parts: list[str]) -> bool:
    plain = [unquote(each).strip().lower() for each in parts[:2]]
    if plain[0] in _FIRST:
        return True
    return len(plain) > 1 and (plain[1] in _SECOND or plain[1] in ("+", "*", "#", "**"))


def topic_of(destination: str) -> str:
    """Return the topic of a destination: itself, or below `destinations` where it resembles one of
    the platform's.
    """
    return f"{DESTINATIONS}/{destination}" if resembles(destination) else destination
