"""What is older than it is kept is shown by no way of reading, before it is removed and after."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from api_builders import Caller, Served
from search_builders import Store, search, times, update

from servioticy.ports.batches import Batch

DAY = 86_400
NOW = int(time.time())
OLD, NEW = [NOW - 9 * DAY, NOW - 8 * DAY], [NOW - 60, NOW - 30]
CHANNELS = {"n": {"type": "number"}}
FROM_TO = f"from=0&to={NOW}"


def document(said: Any, of_stream: Any = None) -> dict[str, Any]:
    own = {} if of_stream is None else {"dataTTL": of_stream}
    whole = {} if said is None else {"dataTTL": said}
    return {**whole, "streams": {"a": {"channels": CHANNELS, **own}}}


def stored(served: Served, so: str) -> None:
    """Two old updates and two new ones, all acknowledged."""
    served.store()
    Store(served.platform, so).add(*(update(at, n=at) for at in (*OLD, *NEW)))
    store = served.platform.store
    at = store.all_progress()[0]
    store.store(Batch(0, at, at + 1, at))
    store.end(0)


def shown(caller: Caller, so: str) -> list[list[int]]:
    """The timestamps that each way of reading a history tells of."""

    def get(path: str) -> Any:
        answer = caller.ask("GET", f"/{so}/streams/a{path}")
        assert answer.status_code == 200, answer.text
        return answer

    pages = [
        get(path).get_json()["data"] for path in ("", "/updates", f"/updates?{FROM_TO}&order=desc")
    ]
    found = [sorted(each["lastUpdate"] for each in page) for page in pages]
    exported = get(f"/export?{FROM_TO}&format=ndjson").data.splitlines()
    found.append([orjson.loads(line)["lastUpdate"] for line in exported])
    buckets = get(f"/aggregates?channel=n&bucket={DAY}&{FROM_TO}").get_json()["data"]
    assert sum(each["count"] for each in buckets) == len(found[0])
    assert min(each["first"] for each in buckets) == found[0][0]
    for _ in range(2):  # by reading, and by what the first search has made
        found.append(times(search(caller, so, {"timerange": True})))
    return found


def test_no_way_of_reading_shows_what_has_expired(served: Served, alice: Caller) -> None:
    so = alice.create(document(DAY))
    stored(served, so)
    assert all(each == NEW for each in shown(alice, so))

    tenant = served.platform.stream(so).tenant
    done = served.platform.store.expire(tenant, 0, 10, 100, 10**6)

    assert done.updates == 2
    assert all(each == NEW for each in shown(alice, so))
    assert served.platform.database.rows("SELECT count(*) FROM updates") == [(2,)]


def test_searched_columns_are_made_anew_without_what_has_gone(
    served: Served, alice: Caller
) -> None:
    """They held it: it had not expired when the stream was searched."""
    so = alice.create(document(None))
    stored(served, so)
    assert all(each == [*OLD, *NEW] for each in shown(alice, so))
    assert alice.ask("PUT", f"/{so}", json=document(DAY)).status_code in (200, 201)
    assert all(each == NEW for each in shown(alice, so))

    served.platform.store.expire(served.platform.stream(so).tenant, 0, 10, 100, 10**6)

    assert all(each == NEW for each in shown(alice, so))
    again = alice.ask("PUT", f"/{so}", json=document(-1))
    assert again.status_code in (200, 201)
    assert all(each == NEW for each in shown(alice, so)), "what is gone does not come back"


def test_the_last_update_is_shown_whatever_its_age(served: Served, alice: Caller) -> None:
    so = alice.create(document(60))
    served.store()
    Store(served.platform, so).add(update(OLD[0], n=1))

    answer = alice.ask("GET", f"/{so}/streams/a/lastUpdate").get_json()
    assert answer["data"][0]["lastUpdate"] == OLD[0]
    assert alice.ask("GET", f"/{so}/streams/a/updates").get_json()["data"] == []


def test_stored_bytes_are_less_when_it_is_gone(served: Served, alice: Caller) -> None:
    so = alice.create(document(DAY))
    stored(served, so)
    tenant, database = served.platform.stream(so).tenant, served.platform.database
    size = "SELECT sum(octet_length(document::text))::bigint FROM updates"
    ((before,),) = database.rows(size)
    values = {"tenant": tenant, "bytes": before}
    database.rows("INSERT INTO stored_amounts VALUES (%(tenant)s, %(bytes)s)", values)

    done = served.platform.store.expire(tenant, 0, 10, 100, 10**6)

    assert database.rows("SELECT bytes FROM stored_amounts") == database.rows(size)
    assert done.bytes == before - database.rows(size)[0][0] > 0


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (document(0), "/dataTTL"),
        (document(-7), "/dataTTL"),
        (document(10**12), "/dataTTL"),
        (document(60, "60"), "/streams/a/dataTTL"),
        (document(60, 0), "/streams/a/dataTTL"),
        (document(None, 2.5), "/streams/a/dataTTL"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(
    alice: Caller, body: dict[str, Any], pointer: str
) -> None:
    so = alice.create(document(None))
    for answer in (alice.ask("POST", "/", json=body), alice.ask("PUT", f"/{so}", json=body)):
        assert answer.status_code == 400
        assert answer.get_json()["pointer"] == pointer
        assert "whole number of seconds from 1 to 3153600000, or -1" in answer.text
