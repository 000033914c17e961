"""What filters match, and who is meant by their first part."""

from __future__ import annotations

import pytest

from broker.errors import BadTopic
from broker.stomp_frames import destination_of, topic_of
from broker.topics import (
    EVERYTHING,
    MAX_LEVELS,
    MAX_TOPIC,
    matches,
    part,
    read_filter,
    read_topic,
    stream_of,
)
from servioticy.domain.model import StreamRef
from servioticy.domain.tokens import digest


@pytest.mark.parametrize(
    ("wanted", "topic", "is_so"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b/c", False),
        ("a/b/c", "a/b", False),
        ("a/+", "a/b", True),
        ("a/+", "a", False),
        ("a/+/c", "a/b/c", True),
        ("a/+/c", "a/b/d", False),
        ("a/#", "a/b/c", True),
        ("a/#", "a", True),
        ("a/b/#", "a/c/d", False),
    ],
)
def test_wildcards_stand_for_parts(wanted: str, topic: str, is_so: bool) -> None:
    levels = ("first", *topic.split("/")[1:])

    assert matches(read_filter(wanted).levels, levels) is is_so


@pytest.mark.parametrize(
    "text",
    ["", "#", "+", "+/a", "/a", "a/#/b", "a/b#", "a/b+/c", "a\0b", "updates/a/+", "updates"],
)
def test_a_filter_that_nobody_may_have(text: str) -> None:
    with pytest.raises(BadTopic):
        read_filter(text)


def test_topics_are_bounded() -> None:
    assert read_topic("x" * MAX_TOPIC)
    assert read_topic("/".join("x" * MAX_LEVELS))
    for text in ("x" * (MAX_TOPIC + 1), "/".join("x" * (MAX_LEVELS + 1)), "a/+", "a/#"):
        with pytest.raises(BadTopic):
            read_topic(text)


def test_a_token_stands_for_its_digest() -> None:
    """What is stored of a destination that is a token is that."""
    assert read_filter("secret/x").keys == {"secret", digest("secret").hex()}


def test_destinations_are_topics() -> None:
    assert topic_of("/topic/a.*.c.**") == "a/+/c/#"
    assert topic_of("/topic/a/with.dot") == "a/with.dot"
    assert destination_of("a/b") == "/topic/a.b"
    assert destination_of("a/with.dot") == "/topic/a/with.dot"


@pytest.mark.parametrize("name", ["flow", "a/b", "c++", "#1", "50%", "%2F", "ü"])
def test_any_name_of_a_stream_is_a_part_of_a_topic(name: str) -> None:
    levels = read_topic(f"updates/pump/{part(name)}")

    assert stream_of(levels) == StreamRef("pump", name)


@pytest.mark.parametrize(
    ("topic", "is_so"),
    [
        ("news", True),
        ("token/pump/streams/flow/updates", True),
        ("pump/actions", True),
        ("updates/pump/flow", False),
        ("token/from", False),
        ("pump/actuations/7", False),
        ("$SYS/broker", False),
    ],
)
def test_a_bridge_gets_everything_but_what_the_platform_takes(topic: str, is_so: bool) -> None:
    """It would come back from there, and be taken once more."""
    assert EVERYTHING.takes(read_topic(topic)) is is_so
