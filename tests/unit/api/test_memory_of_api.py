"""Every map of the API, of the way into the log and of doors is bounded, and something empties it.

Whoever adds one says here what bounds it and what takes its entries away; see docs/limits.md.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from long_lived_maps import maps

import api
import ingest
from servioticy import doors

REQUEST = "one request, or one turn of what goes on in the background"

OF_API = {
    "backfills/growing.py:Growing._rows": "what comes of 200 trees, or ROWS; each is yielded",
    "backfills/region.py:Concerned.reach_back": "MOST_STREAMS; the end of its backfill",
    "backfills/together.py:Together._lasts": "MOST_STREAMS; the end of its backfill",
    "backfills/together.py:Together._numbers": "MOST_STREAMS; the end of its backfill",
    "backfills/jobs.py:BackfillJobs._begun": "MAX_REMEMBERED; who began longest ago goes",
    "backfills/jobs.py:BackfillJobs._under_way": "MOST_BEGUN; its end, or that of the turn",
    "background/lost_ends.py:LostEnds._overdue": "MAX_OVERDUE; each look",
    "console/assets.py:Assets._ours": "files of ours",
    "console/assets.py:_packed": "files of ours, and those that are downloaded",
    "console/assets.py:assets_of": "one",
    "console/editing.py:Edited.places": REQUEST,
    "console/editing.py:_Reading._places": REQUEST,
    "console/editing.py:_Reading._raw": REQUEST,
    "console/names.py:Names._found": REQUEST,
    "console/topology.py:Graph._documents": REQUEST,
    "console/topology.py:Graph.edges": REQUEST,
    "console/topology.py:Graph.found": REQUEST,
    "console/topology.py:Graph.nodes": REQUEST,
    "documents/around.py:_Look._grants": REQUEST,
    "documents/around.py:_Look.found": REQUEST,
    "documents/traced.py:TracedStore._keys": REQUEST,
    "documents/tracing.py:Tracing._made": REQUEST,
    "documents/tracing.py:Tracing.hidden": REQUEST,
    "documents/tracing.py:Tracing.steps": REQUEST + "; MOST_STEPS",
    "edge/calls.py:Application._always": "what is in it",
    "edge/deadlines.py:Deadlines._since": "connections; end, or late",
    "edge/edge.py:Edge._connections": "api_connections; disconnected",
    "edge/edge.py:Edge._pools": "six",
    "edge/edge.py:Edge._threads": "seven",
    "edge/framing.py:Body.content": "max_body_bytes; the request's end",
    "edge/hall.py:Hall._arriving": "what is let in at once; its connection's begin",
    "edge/incoming.py:Incoming._arrived": "MAX_AHEAD and a read; taken, or the connection's end",
    "edge/pools.py:Budget._held": "callers that hold something; give",
    "edge/pools.py:Pool._running": "threads; finished",
    "edge/pools.py:Pool._waiting": "api_queue, and one a connection; its turn, or expired",
    "platform/slowest.py:Slowest._known": "what it is ordered by, two; the next one",
    "platform/telling.py:Programs._known": "one answer; the next one",
    "platform/telling.py:Programs._ports": "programs",
    "edge/threads.py:Threads._jobs": "threads of its pool; a thread that is free",
    "edge/threads.py:Threads._results": "threads of its pool; collect",
    "edge/waiter.py:Waiter._new": "api_waiting_reads; each look",
    "exports/columns.py:ParquetFile._batches": REQUEST + ": a row group",
    "exports/columns.py:_Sink._parts": REQUEST + ": a page",
    "exports/columns.py:_Table._kinds": REQUEST,
    "exports/columns.py:_Table._types": REQUEST,
    "exports/comma_separated.py:CommaSeparated._types": REQUEST,
    "fleets/jobs.py:Jobs._careful": "MAX_CAREFUL; all at once",
    "fleets/jobs.py:Jobs._versions": "MAX_VERSIONS; all at once",
    "fleets/making.py:Maker._known": "MAX_KEPT; the oldest",
    "http/attempts.py:Attempts._of": "MAX_REMEMBERED; the oldest",
    "http/authentication.py:_rights": "routes",
    "http/idempotency.py:Idempotency._full": "MAX_KNOWN tenants; the oldest",
    "http/reading.py:Reading._counted": "MAX_TENANTS; stored every ten seconds",
    "resources/descriptions.py:_our_file": "files of ours",
    "resources/descriptions.py:_written": "contracts, and the name that we listen on",
    "resources/tokens.py:_Ended._made": "REMEMBERED tenants; the least used",
    "search/blocks.py:Blocks.conditions": REQUEST,
    "search/blocks.py:Kept.bounds": "ROOM_FOR_BOUNDS; the least used",
    "search/blocks.py:Kept.contents": "ROOM; the least used",
    "search/blocks.py:Kept.lists": "ROOM_FOR_BOUNDS; the least used",
    "search/blocks.py:Rows.essences": REQUEST + ": two blocks",
    "search/blocks.py:Rows.timestamps": REQUEST + ": two blocks",
    "stepping/answering.py:Answering._begun": "MOST_BEGUN; its end, or told that nobody wants it",
    "stepping/answering.py:Answering._failed": "MOST_BEGUN; as the one before",
    "stepping/apart.py:StepsApart._begun": "MOST_BEGUN; the work's end",
    "stepping/apart.py:StepsApart._ended": "MOST_BEGUN; the next step of any",
    "replaying/moments.py:DueTimes._heap": "what is kept: KEPT_BYTES; the replay's end",
    "replaying/moments.py:DueTimes._now": "what is kept: KEPT_BYTES; the replay's end",
    "replaying/replay.py:Replay._clocks": "streams of its region; the replay's end",
    "replaying/replay.py:Replay._operators": "streams of its region; the replay's end",
    "replaying/replay.py:Replay._sizes": "what is kept: KEPT_BYTES; the replay's end",
    "replaying/replay.py:Replay.numbers": "streams of its region; the replay's end",
    "trials/comparing.py:Comparison._kinds": "verdicts",
    "trials/comparing.py:Comparison._results": "COMPUTATIONS, and VERSION_BYTES; its end",
    "trials/comparing.py:Comparison._seconds": "two",
    "trials/comparing.py:Comparison._told": "MOST_UPDATES, and VERSION_BYTES of each; its end",
    "trials/playing.py:_Came._endings": "STREAMS; the end of what comes of an update",
    "trials/playing.py:_Came._kinds": "verdicts",
    "trials/playing.py:_Came._results": "COMPUTATIONS; the end of what comes of an update",
    "trials/stored.py:_Last.missed": "STREAMS; the trial's end",
    "trials/wholeness.py:Whole._reached": "STREAMS; the trial's end",
    "trials/wholeness.py:Whole.left_out": "COMPUTATIONS; the trial's end",
    "trials/wholeness.py:_Horizons._found": "STREAMS; the trial's end",
    "trials/wholeness.py:_Horizons._late": "STREAMS; the trial's end",
    "trials/wholeness.py:_Horizons._reads": "STREAMS; the trial's end",
    "workers.py:Workers._processes": "api_workers; its end",
}
OF_INGEST = {
    "batches.py:Sorted.accepted": REQUEST,
    "batches.py:Sorted.refused": REQUEST,
    "hints.py:UpdateHints._newest": "ROOM streams; the least used",
    "ingest.py:_Documents._known": REQUEST,
    "ingest.py:_Part.outcomes": REQUEST,
    "ingest.py:_Part.places": REQUEST,
    "ingest.py:_Part.ready": REQUEST,
    "pacing.py:Pacing._senders": "partitions",
    "pacing.py:Pacing._tenants": "MAX_TENANTS; the one that sent much longest ago",
    "pacing.py:_Tenant.places": "threads that may wait for a tenant; its turn, or TURN_SECONDS",
    "pacing.py:_Tenant.where": "partitions; the next wait",
    "quotas.py:Known.counts": "quotas of one tenant",
    "quotas.py:Known.limits": "quotas of one tenant",
    "quotas.py:Known.rates": "quotas of one tenant",
    "quotas.py:Known.used": "quotas of one tenant",
    "quotas.py:SendersQuotas._known": "MAX_KNOWN tenants; the one asked for longest ago",
    "quotas.py:SendersQuotas._to_tell": "those of _known; half a second, or with the tenant",
    "updates_waiting.py:UpdatesWaiting._known": "MAX_KNOWN tenants; the oldest",
}
OF_DOORS = {
    "door.py:Door._listeners": "sockets that are listened at; close",
    "door.py:Door._waiting": "most; its turn, or the one that waits longest is closed",
    "vestibule.py:Vestibule._arriving": "most; its connection's begin",
    "vestibule.py:Vestibule._shaking": "most; hands shaken, HANDSHAKE_SECONDS, or more of them",
    "porch.py:Porch._waiting": "MOST_WAITING an address and state; its turn, or closed",
}
"""What bounds each, and after the semicolon what takes its entries away."""


@pytest.mark.parametrize(
    ("package", "bounded"), [(api, OF_API), (ingest, OF_INGEST), (doors, OF_DOORS)]
)
def test_each_map_says_what_bounds_it_and_what_takes_it_away(
    package: ModuleType, bounded: dict[str, str]
) -> None:
    found = set(maps(Path(str(package.__file__)).parent))

    assert found - bounded.keys() == set(), "say what bounds these"
    assert bounded.keys() - found == set(), "these are gone"
