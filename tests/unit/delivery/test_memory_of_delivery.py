"""Every map of delivery that outlives a request is bounded, and something takes it away.

Whoever adds one says here what bounds it and what takes its entries away; see docs/limits.md.
"""

from __future__ import annotations

from pathlib import Path

from long_lived_maps import maps

import delivery

ROOT = Path(delivery.__file__).parent

BOUNDED = {
    "accounts.py:Accounts._counted": "MAX_COUNTED pairs; stored every ten seconds",
    "actuations/acting_streams.py:ActingStreams._known": "ROOM bytes; the oldest go",
    "actuations/couriers.py:Couriers._again": "of _running; goes with it",
    "actuations/couriers.py:Couriers._running": (
        "Service Objects for which something waits, 10,000 of a tenant; the task's end"
    ),
    "actuations/lane.py:Lane._given": "WINDOW; what is taken, or another round",
    "actuations/lane.py:Lane._taken": "WINDOW; once it is stored",
    "actuations/queues.py:Queues._came": "devices of sockets and clients; each look takes some",
    "actuations/queues.py:Queues._joined": "quota live-subscriptions; leave",
    "actuations/queues.py:Queues._running": "of lanes; goes with each",
    "actuations/queues.py:Queues._tenants": "tenants with clients; each look",
    "actuations/queues.py:Queues.lanes": "devices that are connected; the lane's end",
    "actuations/together.py:Together._gathered": "one question of a lane; each answer",
    "actuations/together.py:Together._working": "tenants with lanes; the task's end",
    "admission/fair_executor.py:FairExecutor._queues": "max_waiting, or one a caller; a turn",
    "admission/fair_places.py:FairPlaces._in_use": "in_all; release",
    "admission/fair_places.py:FairPlaces._waiting": "one of each caller; a turn, or cancelled",
    "admission/owner_semaphore.py:OwnerSemaphore._in_use": "in_all; release",
    "admission/owner_semaphore.py:OwnerSemaphore.others": "what operators said; each look",
    "admission/owner_semaphore.py:OwnerSemaphore.elsewhere": "in_all of others; they release",
    "admission/places_shared.py:SharedPlaces._others": "in_all of others; they release, or die",
    "admission/places_shared.py:SharedPlaces._told": "in_all; told",
    "admission/pending.py:PendingConnections._connected": "file descriptors; disconnected",
    "admission/pending.py:PendingConnections._pending": "max_pending; the oldest is cut",
    "admission/resting.py:Resting._exceeded": "tenants; each look",
    "admission/resting.py:Resting._over": "tenants that rest; change",
    "admission/spending.py:Spending._exceeded": "tenants; each look",
    "admission/spending.py:Spending._spent": "MAX_COUNTED streams; stored every ten seconds",
    "admission/stays.py:Stays._due": "of those let in; looked up, or leave",
    "admission/stays.py:Stays._tasks": "three",
    "admission/stays.py:_Index._held": "quotas sockets and live-subscriptions; leave",
    "backlog.py:Backlog._bytes": "of feeds and sockets; remove",
    "callbacks/asked_tests.py:AskedTests._sending": "MOST_AT_ONCE; the task's end",
    "callbacks/requests.py:CallbackForm.fields": "a subscription, of 32 KiB; its end",
    "callbacks/receiver.py:Callbacks._hosts": "weak: hosts that are called now",
    "cursors.py:Cursor._next_offsets": "partitions",
    "fanout.py:FanOut._batches": "MAX_WAITING_BATCHES; as they are offered",
    "fanout.py:FanOut._begun": "records of MAX_WAITING_BATCHES; once offered to all",
    "feeds/beginnings.py:Beginnings._asked": "partitions of the topic",
    "feeds/feeds.py:Feeds._known": "quota subscriptions; each look",
    "feeds/feeds.py:Feeds._lent": "quotas sockets and live-subscriptions; take_back",
    "feeds/feeds.py:Feeds._moved": "of feeds; each time they are stored",
    "feeds/feeds.py:Feeds._running": "of feeds; _remove",
    "feeds/feeds.py:Feeds._tasks": "four",
    "feeds/feeds.py:Feeds.feeds": "quota subscriptions; _remove",
    "feeds/new_streams.py:NewStreams._ages": "looks of NEW_SECONDS; they grow old",
    "feeds/place.py:Place.history": "streams of a subscription; acknowledged",
    "feeds/pulls.py:Pull._window": "MAX_UNACKNOWLEDGED; acknowledged",
    "feeds/pulls.py:Pulls._open": "quota subscriptions; the receiver's end",
    "feeds/reached.py:Reached.history": "streams of a subscription; read",
    "feeds/rereading.py:Rereading._behind": "of feeds; once they are live, or forget",
    "feeds/rereading.py:Rereading._reading": "of feeds; the task's end, or forget",
    "feeds/waiting.py:Waiting._queue": "MAX_QUEUED_BYTES and one more; taken, or dropped",
    "handover.py:Handover._held": "MAX_HELD_BYTES; released",
    "hub.py:Hub._transports": "those of the program",
    "entrance.py:Entrance._arriving": "what is let in at once; its connection's begin",
    "entrance.py:Entrance._listeners": "addresses of the host; close",
    "lanes.py:Lanes._lanes": "tenants for which something waits; once it is offered",
    "lanes.py:_Lane.offerings": "MAX_WAITING_BATCHES; once they are offered",
    "repeats.py:Repeats._keys": "MAX_REMEMBERED; REMEMBER_SECONDS",
    "transports/devices.py:Device._unreported": "WINDOW of each round; reported, or it leaves",
    "transports/devices.py:Device._unsent": "WINDOW; sent",
    "transports/http.py:HttpTransport._readers": "quota sockets; the call's end",
    "transports/http_call.py:HttpCall._said": "MAX_HEAD_BYTES and a body of 4 KiB; the call's end",
    "transports/http_call.py:HttpCall._when_lost": "one of each place taken; it is lost",
    "transports/live.py:LiveSession._own": "MAX_SUBSCRIPTIONS; the task's end",
    "transports/live.py:LiveSession._subscriptions": "MAX_SUBSCRIPTIONS; _forget",
    "transports/live.py:LiveSession._tasks": "MAX_SUBSCRIPTIONS; the task's end",
    "transports/live_sender.py:LiveSender._ready": "each subscription once; sent",
    "transports/pieces.py:Pieces._said": "what was read at once: no more is read; worked on",
    "transports/websocket.py:WebSocketTransport._admissions": "weak: open connections",
    "transports/websocket.py:WebSocketTransport._devices": "weak: open connections",
    "transports/websocket.py:WebSocketTransport._known": "weak: open connections",
    "transports/websocket_caller.py:WebSocketCaller._when_lost": "one of each place; it is lost",
    "peering.py:Peering._parts": "what we have; never",
    "peering.py:Peering.others": "processes; each look",
    "peering.py:Peering._tasks": "parts; stop",
    "turns.py:Turns._had": "AT_ONCE; each round",
    "turns.py:Turns._waiting": "one of each task; its turn",
    "watcher.py:Watcher._page": "PAGE_BYTES; sent",
    "watchers.py:Watchers._by_stream": "of feeds and sockets; remove",
}
"""What bounds each, and after the semicolon what takes its entries away."""


def test_each_map_says_what_bounds_it_and_what_takes_it_away() -> None:
    found = set(maps(ROOT))

    assert found - BOUNDED.keys() == set(), "say what bounds these"
    assert BOUNDED.keys() - found == set(), "these are gone"
