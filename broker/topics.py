"""Topics: what they mean, how filters match them, and who is meant by their first part.

The first part of a filter is always written out. It is a token, a destination or a Service
Object, so a wildcard there would show a client what others are called; below it, wildcards
are MQTT's.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from broker.errors import BadTopic
from servioticy.domain.message_topics import (
    ACTIONS,
    ACTUATIONS,
    CLAIMS,
    ERRORS,
    FROM,
    UPDATES,
)
from servioticy.domain.model import StreamRef
from servioticy.domain.tokens import digest

MAX_TOPIC = 2_000
MAX_LEVELS = 32
ONE, ALL = "+", "#"

Levels = tuple[str, ...]
OWN: frozenset[Levels] = frozenset({(ERRORS,), (CLAIMS,)})
"""Under these a client is told what is about itself, also before it has said who it is."""


class Filter(NamedTuple):
    """What a client subscribes to."""

    levels: Levels

    @property
    def keys(self) -> frozenset[str]:
        """The first parts of topics that it may match: itself, and where it is a token, its
        SHA-256, which is what stands for a token in a destination."""
        return frozenset({self.levels[0], digest(self.levels[0]).hex()})

    @property
    def watched(self) -> StreamRef | None:
        """The stream that it names, where it is of the form `updates/OBJECT/STREAM`."""
        return stream_of(self.levels)

    @property
    def is_everything(self) -> bool:
        """Whether it is that of a bridge, which no client can ask for."""
        return self.levels == (ALL,)

    def takes(self, topic: Levels) -> bool:
        """Tell whether it matches a topic whose first part is one of its keys."""
        if self.is_everything:
            return not (is_taken(topic) or topic[0].startswith("$"))
        return matches(self.levels, topic)


EVERYTHING = Filter((ALL,))
"""All that goes out of the platform. What its clients publish is not: it would come round."""


def is_taken(topic: Levels) -> bool:
    """Tell whether the platform takes what clients publish to a topic."""
    is_request = len(topic) == 2 and topic[1] == FROM
    is_report = len(topic) == 3 and topic[1] == ACTUATIONS
    return is_request or is_report or stream_of(topic) is not None


def stream_of(levels: Levels) -> StreamRef | None:
    """Return the stream that a topic names, where it is of the form `updates/OBJECT/STREAM`."""
    if levels[0] != UPDATES or len(levels) != 3:
        return None
    return StreamRef(unquote(levels[1]), unquote(levels[2]))


def actuated(levels: Levels) -> str | None:
    """Return the Service Object whose actuations a filter matches; None: those of none."""
    name = unquote(levels[0])
    return name if matches(levels, (levels[0], ACTIONS)) else None


def part(name: str) -> str:
    """Return a name as a part of a topic: what means something there is written as in a URL."""
    return plain(name.replace("%", "%25").replace("/", "%2F"))


def plain(topic: str) -> str:
    """Return a topic in which nothing is a wildcard."""
    return topic.replace("+", "%2B").replace("#", "%23")


def read_topic(text: str) -> Levels:
    """Return the parts of a topic that is published to. Raises BadTopic."""
    levels = _levels(text)
    if ONE in text or ALL in text:
        raise BadTopic("A topic that is published to has no wildcards")
    return levels


def read_filter(text: str) -> Filter:
    """Return what a client subscribes to. Raises BadTopic."""
    levels = _levels(text)
    for place, level in enumerate(levels):
        if ALL in level and (level != ALL or place != len(levels) - 1):
            raise BadTopic("# stands alone, as the last part of a topic")
        if ONE in level and level != ONE:
            raise BadTopic("+ stands alone, as a part of a topic")
    if levels[0] in (ONE, ALL, ""):
        raise BadTopic("The first part of a topic has to be written out")
    if levels[0] == UPDATES and (len(levels) != 3 or {ONE, ALL} & set(levels)):
        raise BadTopic("One stream is watched as updates/SERVICE OBJECT/STREAM, without wildcards")
    return Filter(levels)


def matches(wanted: Levels, topic: Levels) -> bool:
    """Tell whether what follows the first part of a filter matches what follows a topic's."""
    for place, level in enumerate(wanted[1:], 1):
        if level == ALL:
            return True
        if place >= len(topic) or level not in (ONE, topic[place]):
            return False
    return len(wanted) == len(topic)


def _levels(text: str) -> Levels:
    if not text or len(text) > MAX_TOPIC or "\0" in text:
        raise BadTopic(f"A topic has 1 to {MAX_TOPIC} characters, none of them NUL")
    levels = tuple(text.split("/"))
    if len(levels) > MAX_LEVELS:
        raise BadTopic(f"A topic has at most {MAX_LEVELS} parts")
    return levels
