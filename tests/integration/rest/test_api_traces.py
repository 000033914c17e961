"""The trace context of a request comes into the log with all of its updates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api_builders import UPDATE, Caller, Served

from api.app import SERVICES
from api.edge.calls import Application, Request
from api.updates_lane import UpdatesLane
from servioticy.domain.records import UpdateRecord
from servioticy.domain.traces import MAKING
from servioticy.http_heads import parse

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
MADE = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"
BATCH = b"[%b]" % b",".join(UPDATE.replace(b":1}", b":%d}" % at) for at in (1, 2, 3))


def traces(served: Served) -> list[str]:
    log = [served.platform.records(n) for n in range(served.platform.log.partitions())]
    records = [each for records in log for _, each in records]
    return [each.trace for each in records if isinstance(each, UpdateRecord)]


@pytest.fixture
def making() -> Iterator[None]:
    MAKING.make = lambda: MADE
    yield
    MAKING.make = None


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        (CONTEXT, CONTEXT),
        (f"cc-{CONTEXT[3:]}-more", CONTEXT),
        (f"ff-{CONTEXT[3:]}", ""),
        (f"{CONTEXT},{CONTEXT}", ""),
        ("x" * 8000, ""),
        ("", ""),
    ],
)
def test_an_update_has_the_context_that_came_with_it(
    header: str, kept: str, served: Served, alice: Caller
) -> None:
    """One that is not valid is none, and nobody is refused for it."""
    so, headers = alice.create(), {"traceparent": header}
    one = alice.ask("PUT", f"/{so}/streams/a", data=UPDATE, headers=headers)
    many = alice.ask("POST", f"/{so}/streams/a/updates", data=BATCH, headers=headers)

    assert (one.status_code, many.status_code) == (202, 202), many.text
    assert traces(served) == [kept] * 4


def test_those_that_come_together_have_each_its_own(
    served: Served, alice: Caller, making: None
) -> None:
    """In the lane of plain updates; one without is given one while that is wanted."""
    so = alice.create()
    lane = UpdatesLane(served.app.extensions[SERVICES].ingest)
    application = Application(served.app, "127.0.0.1", 8080, lane.answers)
    assert alice.put(so).status_code == 202

    def a_put(*more: str) -> Request:
        lines = [f"PUT /{so}/streams/a HTTP/1.1", "Host: h", f"Authorization: {alice.token}"]
        lines += [f"Content-Length: {len(UPDATE)}", *more]
        return Request(parse("\r\n".join(lines).encode()), UPDATE, "127.0.0.1")

    assert application.together is not None
    answers = application.together(
        [
            a_put(f"traceparent: {CONTEXT}"),
            a_put(),
            a_put(f"TraceParent: {CONTEXT}", f"traceparent: {CONTEXT}"),
        ]
    )

    assert [each.status for each in answers if each is not None] == ["202 ACCEPTED"] * 3
    assert traces(served) == [MADE, CONTEXT, MADE, MADE]


def test_browsers_may_send_it(alice: Caller) -> None:
    answer = alice.ask("OPTIONS", "/")

    assert "traceparent" in answer.headers["Access-Control-Allow-Headers"]
