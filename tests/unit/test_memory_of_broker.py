"""Every map of the broker is bounded, and something empties it.

Whoever adds one says here what bounds it and what takes its entries away; see docs/limits.md.
"""

from __future__ import annotations

from pathlib import Path

from long_lived_maps import maps

import broker

CLIENT = "clients, which have a quota"
SUBSCRIPTION = "MAX_SUBSCRIPTIONS of a client"

BOUNDED = {
    "bridge/bridge.py:Bridges._bridges": "what operators said; each look",
    "bridge/bridge.py:Bridges._running": "of _bridges; the task's end",
    "bridge/complaints.py:Complaints._counts": "events that we have names for; told",
    "bridge/complaints.py:Complaints._told": "events that we have names for",
    "bridge/conversation.py:Conversation._owed": "numbers of packets, 65,535; acknowledged",
    "broker.py:Broker._stays": CLIENT + ", and " + SUBSCRIPTION + "; its end",
    "broker.py:Broker._watches": SUBSCRIPTION + "; unsubscribe, or its end",
    "broker.py:Broker.clients": "file descriptors; the client's end",
    "claims.py:Claims._addresses": "weak: claims that are asked for now",
    "client.py:Client.subscriptions": SUBSCRIPTION + "; unsubscribe",
    "exchange.py:Exchange._came": "durable subscriptions, which have a quota; somebody comes",
    "exchange.py:Exchange._subscriptions": SUBSCRIPTION + "; unsubscribe, or its end",
    "intake.py:Intake._waiting": "MAX_WAITING and MAX_WAITING_BYTES; worked on",
    "lane.py:Lane._waiting": "a part of each client; its turn",
    "listener.py:BrokerTransport._entrances": "our ports, two; never",
    "listener.py:BrokerTransport._servers": "our ports, two; never",
    "listener.py:BrokerTransport._talks": "file descriptors; the client's end",
    "mqtt.py:MqttConversation._incomplete": "MAX_INCOMPLETE; PUBREL",
    "mqtt_outlet.py:MqttOutlet._queue": "backlog of the client: who takes too little is closed",
    "mqtt_outlet.py:MqttOutlet._unacknowledged": "window; acknowledged",
    "mqtt_packets.py:Connect.properties": "MAX_PROPERTIES; the client's end",
    "names.py:Names._again": "of _held; told",
    "names.py:Names._held": CLIENT + "; its end",
    "names.py:Names._untold": "of _held; told",
    "passing_on.py:PassingOn._elsewhere": "slots, 64; each look",
    "passing_on.py:PassingOn._ending": "of _relays; the task's end",
    "passing_on.py:PassingOn._relays": CLIENT + "; its end",
    "places.py:Places._used": "tenants with a place; given back",
    "places.py:Places._waiting": "one of each client at work; its turn, or it has gone",
    "receiver.py:_Round._given": "WINDOW and WINDOW_BYTES; acknowledged",
    "stomp_outlet.py:StompOutlet._unacknowledged": "backlog of the client; acknowledged",
    "stomp_outlet.py:StompOutlet.cumulative": SUBSCRIPTION + "; forget",
    "stomp_outlet.py:StompOutlet.destinations": SUBSCRIPTION + "; forget",
    "turns.py:Turns._strangers": "file descriptors; a turn",
    "turns.py:Turns._tenants": CLIENT + "; a turn",
    "watch.py:Watch._held": "MAX_HELD; begun",
    "wire.py:Wire._buffer": "a frame, and what was read at once; taken",
    "wire.py:Wire._when_lost": "one of each place taken; it is lost",
}
"""What bounds each, and after the semicolon what takes its entries away."""


def test_each_map_says_what_bounds_it_and_what_takes_it_away() -> None:
    found = set(maps(Path(broker.__file__).parent))

    assert found - BOUNDED.keys() == set(), "say what bounds these"
    assert BOUNDED.keys() - found == set(), "these are gone"
