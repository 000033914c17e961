"""No text of a tenant lies in a space that means something to the platform."""

from __future__ import annotations

import pytest

from broker.stomp_frames import destination_of
from broker.stomp_frames import topic_of as topic_of_stomp
from broker.topics import actuated, is_taken, read_filter
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.callbacks import check_subscription
from servioticy.domain.message_topics import resembles, topic_of

PLATFORMS = [
    "OTHER/actions",
    "OTHER.actions",
    "OTHER/Actions",
    "OTHER/%61ctions",
    "OTHER%2Factions",
    "OTHER%2eactions",
    "updates%2Fpump",
    "OTHER/actions/x",
    "OTHER/actuations/1",
    "TOKEN/to",
    "TOKEN/from",
    "TOKEN.to",
    "a/+",
    "a/#",
    "a.*",
    "a.**",
    "updates/pump/flow",
    "updates.pump.flow",
    "errors",
    "claims",
    "$SYS/x",
    "/actions",
    ".actions",
    "",
]
TENANTS = [
    "kitchen",
    "a/b",
    "a.b.c",
    "alarms/fire",
    "x/y/actions",
    "0a1b" * 16,
    "sensors/actionable",
    "sensors%2Factionable",
]


@pytest.mark.parametrize("callback", ["pubsub", "service"])
@pytest.mark.parametrize("destination", PLATFORMS)
def test_what_resembles_a_topic_of_the_platform_is_refused(
    destination: str, callback: str
) -> None:
    """A client of the whole tenant took an update at `OTHER/actions` for an actuation."""
    with pytest.raises(BadDocument, match="destination"):
        check_subscription({"callback": callback, "destination": destination})


@pytest.mark.parametrize("callback", ["pubsub", "service"])
@pytest.mark.parametrize("destination", TENANTS)
def test_all_else_is_a_destination_as_it_was(destination: str, callback: str) -> None:
    assert check_subscription({"callback": callback, "destination": destination}) == callback
    assert topic_of(destination) == destination


@pytest.mark.parametrize("destination", PLATFORMS)
def test_one_that_is_there_already_goes_on_in_a_space_of_its_own(destination: str) -> None:
    """In each protocol, and read back from the destination that STOMP writes of it."""
    topic = topic_of(destination)

    for each in (topic, topic_of_stomp(destination_of(topic))):
        levels = tuple(each.split("/"))
        assert levels[0] == "destinations" or each.startswith("destinations.")
        assert not is_taken(levels)
        assert actuated(levels) is None


@pytest.mark.parametrize("filter_", ["OBJECT/actions", "TOKEN/to", "updates/OBJECT/STREAM"])
def test_whatever_the_platform_sends_there_is_reserved(filter_: str) -> None:
    """What a client subscribes to for the platform's own word, no destination is."""
    assert read_filter(filter_)
    assert resembles(filter_)
