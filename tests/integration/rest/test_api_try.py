"""A changed document is tried on what is stored; nothing is stored or sent of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from api_builders import NOW, SIMPLE, Caller, Platform, Served, SwitchedDatabase, trials
from granting import alice, bob, give
from quota_builders import given, told
from sandbox_pools import a_pool

from api.app import SERVICES, create_app
from api.documents.snippets import Snippets
from api.trials import trial as bounds
from api.trials.apart import TrialsApart, trying_process
from sandbox import SandboxPool
from sandbox.text import argument_names
from servioticy.apart.answering import NICE
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.settings import Settings, changed
from servioticy.storage.quotas import PostgresQuotas

__all__ = ["alice", "bob", "given"]


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    """One for all tests: a process takes a second to start."""
    found = a_pool()
    yield found
    found.close()


@pytest.fixture
def served(backend: Platform, pool: SandboxPool) -> Served:
    app = create_app(
        backend.ports,
        Settings(),
        lambda: NOW,
        argument_names,
        Snippets(pool).problems,
        trials=trials(backend, JavaScript(pool)),
    )
    return Served(app, backend)


def doubling(code: str = "iot.value(a) * 2", **more: Any) -> dict[str, Any]:
    """A simple stream `a`, and `twice` which is computed of it."""
    twice = {
        "channels": {"x": {"type": "number", "current-value": f"function(a){{return {code}}}"}}
    }
    return {"version": "0.2.0", "streams": {**SIMPLE["streams"], "twice": twice}} | more


def sent(served: Served, caller: Caller, so: str, *values: float, since: int = 1) -> None:
    for at, value in enumerate(values, since):
        body = b'{"channels":{"x":{"current-value":%g}},"lastUpdate":%d}' % (value, at)
        assert caller.put(so, body).status_code == 202
    served.store()


def tried(caller: Caller, so: str, document: Any, **query: Any) -> dict[str, Any]:
    answer = caller.ask("POST", f"/{so}/try", json=document, query_string=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def pairs(answer: dict[str, Any], stream: str) -> list[tuple[Any, Any]]:
    """Of each update what both versions made of channel `x` of the stream, None: nothing."""
    found = []
    for update in answer["updates"]:
        each = next((r for r in update["results"] if r["stream"] == stream), {})
        sides = [each.get(side, {}).get("channels", {}).get("x") for side in ("before", "after")]
        found.append((sides[0], sides[1]))
    return found


def rows(database: SwitchedDatabase, table: str) -> int:
    count: int = database.rows(f"SELECT count(*) FROM {table}")[0][0]
    return count


def test_stored_updates_go_through_both_versions(served: Served, alice: Caller) -> None:
    so = alice.create(doubling())
    sent(served, alice, so, 1, 2, 3)
    before = [rows(served.platform.database, t) for t in ("updates", "verdicts", "definitions")]
    logged = [len(served.platform.records(n)) for n in range(2)]
    answer = tried(alice, so, doubling("iot.value(a) > 1 ? iot.value(a) * 3 : null"))

    assert pairs(answer, f"{so}/twice") == [(2, None), (4, 6), (6, 9)]
    assert answer["updates"][0]["results"][0]["after"] == {
        "verdict": "filtered",
        "message": "channel x is null",
    }
    assert answer["updates"][1]["results"][0]["differences"] == [
        {"channel": "x", "before": 4, "after": 6}
    ]
    assert (answer["version"], answer["played"], answer["differing"]) == (1, 3, 3)
    assert answer["after"]["verdicts"] == {"emitted": 2, "filtered": 1}
    assert answer["before"]["processorMs"] > 0
    after = [rows(served.platform.database, t) for t in ("updates", "verdicts", "definitions")]
    assert after == before
    assert [len(served.platform.records(n)) for n in range(2)] == logged
    assert alice.ask("GET", f"/{so}/versions").get_json()["versions"][-1]["version"] == 1


def test_the_last_ones_are_played_and_those_before_are_what_was_there(
    served: Served, alice: Caller
) -> None:
    so = alice.create(doubling())
    sent(served, alice, so, *range(1, 31))
    code = "(twice ? 100 : 0) + iot.value(a)"
    document = doubling()
    document["streams"]["twice"]["channels"]["x"]["current-value"] = (
        f"function(a, twice){{return {code}}}"
    )

    assert [each["lastUpdate"] for each in tried(alice, so, document, last=2)["updates"]] == [
        29,
        30,
    ]
    assert len(tried(alice, so, document)["updates"]) == 20
    assert len(tried(alice, so, document, last=100)["updates"]) == 30
    assert tried(alice, so, document, last=0)["updates"] == []
    assert pairs(tried(alice, so, document, last=2), f"{so}/twice") == [(58, 29), (60, 130)]


@pytest.mark.parametrize("last", ["-1", "1001", "x", ""])
def test_a_number_that_is_none_is_refused(last: str, alice: Caller) -> None:
    so = alice.create(doubling())
    answer = alice.ask("POST", f"/{so}/try?last={last}", json=doubling())

    assert answer.status_code == 400
    assert "last has to be a whole number from 0 to 1000" in answer.text
    answer = alice.ask("POST", f"/{so}/try?lasst=3", json=doubling())
    assert answer.status_code == 400
    assert "last" in answer.text


def test_a_document_that_is_none_is_told_as_a_put_tells(alice: Caller) -> None:
    so = alice.create(doubling())
    for bad in (doubling("iot.value(a) *"), {"streams": 7}, {}):
        mine = alice.ask("POST", f"/{so}/try", json=bad)
        put = alice.ask("PUT", f"/{so}", json=bad)
        assert mine.status_code == put.status_code == 400
        assert mine.get_json() == put.get_json()
    text = '{"streams":\n  {"a":,}}'
    answer = alice.ask("POST", f"/{so}/try", data=text, content_type="application/json")
    assert answer.status_code == 400
    assert "line 2" in answer.text


def test_warnings_are_those_of_a_put(alice: Caller) -> None:
    so = alice.create({"streams": {**SIMPLE["streams"], "b": SIMPLE["streams"]["a"]}})
    group = {"version": "0.2.0", "groups": {"g": {"soIds": [so], "stream": "a"}}}
    code = {"channels": {"x": {"type": "number", "current-value": "function(g){return 1}"}}}
    reader = alice.create({**group, "streams": {"out": code}})
    text = {"streams": {"a": {"channels": {"x": {"type": "string"}}}}}
    there = tried(alice, so, text)["warnings"]
    assert there == alice.ask("PUT", f"/{so}", json=text).get_json()["warnings"]
    assert reader in there[0]

    (refused,) = tried(alice, so, {"streams": {"b": SIMPLE["streams"]["a"]}})["warnings"]
    assert refused.startswith("a PUT is refused: The streams a cannot go")
    assert reader in refused


def test_what_is_derived_within_the_tenant_is_played_and_what_is_not_is_not(
    served: Served, alice: Caller, bob: Caller
) -> None:
    so = alice.create(doubling(public=True))
    code = {
        "channels": {
            "x": {"type": "number", "current-value": "function(g){return iot.value(g)+1}"}
        }
    }
    reader = {
        "version": "0.2.0",
        "groups": {"g": {"soIds": [so], "stream": "twice"}},
        "streams": {"out": code},
    }
    mine, theirs = alice.create(reader), bob.create(reader)
    sent(served, alice, so, 5)
    answer = tried(alice, so, doubling("iot.value(a) * 4", public=True))

    assert pairs(answer, f"{mine}/out") == [(11, 21)]
    assert theirs not in str(answer)


@pytest.mark.parametrize("derived_only", [False, True])
def test_others_streams_are_played_only_where_they_are_granted_to_be_read(
    derived_only: bool, served: Served, alice: Caller, bob: Caller
) -> None:
    so = alice.create(SIMPLE)
    sent(served, alice, so, 7)
    reader = {
        "version": "0.2.0",
        "groups": {"g": {"soIds": [so], "stream": "a"}},
        "streams": {
            "out": {
                "channels": {
                    "x": {"type": "number", "current-value": "function(g){return iot.value(g)}"}
                }
            }
        },
    }
    own = bob.create(SIMPLE)
    refused = bob.ask("POST", f"/{own}/try", json=reader)
    assert refused.status_code == 401

    give(alice, so, use="derive" if derived_only else "read")
    answer = tried(bob, own, reader)

    if derived_only:
        assert answer["updates"] == []
        assert answer["notRead"] == [f"{so}/a"]
        assert "7" not in str(answer["updates"])
    else:
        assert pairs(answer, f"{own}/out") == [(None, 7)]
    assert alice.ask("POST", f"/{own}/try", json=SIMPLE).status_code == 401


def test_a_token_of_one_service_object_reads_no_other(served: Served, alice: Caller) -> None:
    so, other = alice.create(doubling()), alice.create(SIMPLE)
    sent(served, alice, other, 3)
    document = doubling()
    document["groups"] = {"g": {"soIds": [other], "stream": "a"}}
    document["streams"]["twice"]["channels"]["x"]["current-value"] = (
        "function(g){return iot.value(g)}"
    )

    def scoped(rights: list[str]) -> Caller:
        wanted = {"name": "-".join(rights), "serviceObject": so, "rights": rights}
        made = alice.ask("POST", "/tokens", json=wanted)
        assert made.status_code == 201, made.text
        return Caller(alice.client, made.get_json()["token"])

    answer = tried(scoped(["change", "read"]), so, document)
    assert answer["notRead"] == [f"{other}/a"]
    assert answer["updates"] == []
    sent(served, alice, so, 1)
    answer = tried(scoped(["change"]), so, doubling())
    assert answer["notRead"] == [f"{so}/a"]
    assert answer["updates"] == []
    assert scoped(["read"]).ask("POST", f"/{so}/try", json=document).status_code == 403


def test_what_it_takes_counts_as_reading_and_ends_with_that_quota(
    served: Served, given: PostgresQuotas
) -> None:
    carol = served.tenant("carol")
    given.give("carol", "read-seconds", 2)
    so = carol.create(doubling())
    sent(served, carol, so, 1, 2)
    quotas = served.app.extensions[SERVICES].quotas
    tenant = served.platform.stream(so).tenant
    before = quotas.reading.seconds(tenant)
    tried(carol, so, doubling())
    assert quotas.reading.seconds(tenant) > before

    quotas.has_read(tenant, 3.0)
    name, policy, _rate = told(carol.ask("POST", f"/{so}/try", json=doubling()))
    assert (name, policy) == ("read-seconds", '"read-seconds";q=2;w=3600')
    assert carol.ask("PUT", f"/{so}", json=doubling()).status_code == 200


def test_code_that_never_ends_is_a_verdict_and_others_go_on(served: Served, alice: Caller) -> None:
    so = alice.create(doubling())
    sent(served, alice, so, 1, 2)
    answer = tried(alice, so, doubling("(function(){while (true) {}})()"))

    assert pairs(answer, f"{so}/twice")[0] == (2, None)
    assert answer["updates"][0]["results"][0]["after"]["verdict"] == "timeout"


def test_more_streams_than_it_looks_at_are_refused(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.trials.stored.STREAMS", 1)
    so = alice.create(doubling())
    answer = alice.ask("POST", f"/{so}/try", json=doubling())

    assert answer.status_code == 400
    assert "This concerns 2 streams, and a trial looks at 1 at most" in answer.text
    assert bounds.STREAMS == 2_000
    monkeypatch.setattr("api.documents.trials.STREAMS_AROUND", 3)
    answer = alice.ask("POST", f"/{so}/try", json=doubling())
    assert answer.status_code == 400
    assert "has 4 streams, and a trial looks at 3 at most" in answer.text


def test_a_process_of_its_own_tells_the_same(
    served: Served, backend: Platform, alice: Caller, session_dsn: str
) -> None:
    so = alice.create(doubling())
    sent(served, alice, so, 1, 2, 3)
    process = trying_process(changed(Settings(), dsn=session_dsn))
    try:
        app = create_app(
            backend.ports, Settings(), lambda: NOW, argument_names, trials=TrialsApart(process)
        )
        there = Caller(app.test_client(), alice.token)
        document = doubling("iot.value(a) * 5")
        found, here = tried(there, so, document), tried(alice, so, document)
        assert process._process is not None
        assert os.getpriority(os.PRIO_PROCESS, process._process._process.pid) >= NICE
        refused = there.ask("POST", f"/{so}/try?last=0", json={**document, "streams": {}})
        assert refused.status_code == 400 or tried(there, so, document)["played"] == 3
    finally:
        process.stop()

    assert pairs(found, f"{so}/twice") == pairs(here, f"{so}/twice") == [(2, 5), (4, 10), (6, 15)]


def test_what_others_read_beside_it_is_as_it_was_at_each_moment(
    served: Served, alice: Caller
) -> None:
    """Of updates at 10, 20 and 30 those at 20 and 30 are played; beside them 5, 25 and 40 came."""
    so, beside = alice.create(doubling()), alice.create(SIMPLE)
    code = "function(g, h) { return iot.value(g) * 1000 + iot.value(h) }"
    reader = alice.create(
        {
            "version": "0.2.0",
            "groups": {
                "g": {"soIds": [so], "stream": "twice"},
                "h": {"soIds": [beside], "stream": "a"},
            },
            "streams": {"out": {"channels": {"x": {"type": "number", "current-value": code}}}},
        }
    )
    for at in (10, 20, 30):
        sent(served, alice, so, at / 10, since=at)
    for at in (5, 25, 40):
        sent(served, alice, beside, at, since=at)
    answer = tried(alice, so, doubling("iot.value(a)"), last=2)

    assert [each["lastUpdate"] for each in answer["updates"]] == [20, 30]
    assert pairs(answer, f"{reader}/out") == [(4005, 2005), (6025, 3025)]


def test_the_newest_of_a_large_group_are_played_whoever_sent_them(
    served: Served, alice: Caller
) -> None:
    members = [alice.create(SIMPLE) for _ in range(12)]
    for at, so in enumerate(members, 1):
        sent(served, alice, so, at, since=at)
    so = alice.create(SIMPLE)
    code = "function(g) { return iot.value(g) }"
    reader = {
        "version": "0.2.0",
        "groups": {"g": {"soIds": members, "stream": "a"}},
        "streams": {"out": {"channels": {"x": {"type": "number", "current-value": code}}}},
    }
    answer = tried(alice, so, reader, last=3)

    assert [each["stream"] for each in answer["updates"]] == [f"{each}/a" for each in members[-3:]]
    assert pairs(answer, f"{so}/out") == [(None, 10), (None, 11), (None, 12)]


def test_what_comes_of_windows_is_told_by_its_time(served: Served, alice: Caller) -> None:
    """What is stored from before the last ones is known to have sent, and in no window."""
    since = int(NOW) - 10_000
    minute = {"type": "tumbling", "size": "1m"}
    so = alice.create(doubling("a.count", version="0.2.0"))
    document = doubling()
    twice = document["streams"]["twice"]
    twice["window"] = minute
    twice["channels"]["x"]["current-value"] = "function(a){return a.count * 100 + a.last('x')}"
    document["streams"]["quiet"] = {
        "silent": "10m",
        "channels": {"x": {"type": "boolean", "current-value": "function(a){return a.silent}"}},
    }
    begin = since - since % 60
    for number in range(6):
        sent(served, alice, so, number, since=begin + 20 * number)
    some, every = tried(alice, so, document, last=4), tried(alice, so, document, last=1000)

    def came(answer: dict[str, Any], stream: str) -> list[tuple[int, Any]]:
        return [
            (each["lastUpdate"] - begin, each["after"]["channels"]["x"])
            for each in answer["windows"]["results"]
            if each["stream"] == f"{so}/{stream}" and "after" in each
        ]

    assert came(every, "twice") == [(59, 302), (119, 305)]
    assert came(some, "twice") == [(119, 305)]
    assert came(some, "quiet") == came(every, "quiet") == [(700, True)]
    assert some["windows"]["leftOut"] == {"before": 0, "after": 1}
    assert every["windows"]["leftOut"] == {"before": 0, "after": 0}
    assert (some["played"], every["played"]) == (4, 6)
    assert all(each["differs"] for each in every["windows"]["results"])


def test_a_fold_is_tried_with_the_windows_that_it_is_of(served: Served, alice: Caller) -> None:
    """It is code of the tenant's, which runs where all of that does."""
    since = int(NOW) - 10_000
    so = alice.create(doubling("a.count", version="0.2.0"))
    document = doubling()
    twice = document["streams"]["twice"]
    twice["window"] = {"type": "tumbling", "size": "1m"}
    twice["fold"] = "function(state, a){return (state === null ? '' : state) + iot.value(a)}"
    twice["channels"]["x"]["current-value"] = "function(state){return Number(state)}"
    begin = since - since % 60
    for number in range(4):
        sent(served, alice, so, number, since=begin + 20 * number)

    answer = tried(alice, so, document, last=1000)
    came = [
        (each["lastUpdate"] - begin, each["after"].get("channels"))
        for each in answer["windows"]["results"]
        if "after" in each
    ]
    assert came[0] == (59, {"x": 12}), answer

    twice["fold"] = "function(state, a){throw new Error('no')}"
    answer = tried(alice, so, document, last=1000)
    verdicts = answer["after"]["verdicts"]
    assert verdicts == {
        "script-error": 1,
        "collected": 2,
        "error": 2,
    }  # its windows have no result
