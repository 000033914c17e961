"""HTTP callbacks: what is sent, to whom, and what becomes of what is not taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

import pytest
from callback_receivers import SECRET, Receiver, a_delivery, an_outgoing

from delivery.callbacks.http_client import AttemptResult, HttpClient
from delivery.callbacks.requests import CallbackForm
from delivery.evaluating.budget import Budget
from delivery.evaluating.templates import filled, for_address, for_body, for_header

Got = list[tuple[str, dict[str, str], bytes]]


def called(form: CallbackForm, **behaviour: object) -> tuple[AttemptResult, Got]:
    """Call a receiver once; return the answer and what it got."""

    async def run() -> tuple[AttemptResult, Got]:
        async with Receiver(**behaviour) as receiver:
            client = HttpClient(["127.0.0.0/8"])
            await client.start()
            url = form.url.replace("HOST", f"127.0.0.1:{receiver.port}")
            request = CallbackForm(
                form.subscription, url, form.format, form.fields, form.secrets
            ).request(an_outgoing(), 1614265330)
            answer = await client.call(request, 7)
            await client.stop()
            return answer, receiver.requests

    return asyncio.run(run())


def test_a_plain_callback_is_the_update_itself() -> None:
    answer, ((line, headers, body),) = called(
        CallbackForm("s", "http://HOST/in", secrets=({"secret": SECRET},))
    )

    assert answer.status == HTTPStatus.OK
    assert line == "POST /in HTTP/1.1"
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"].startswith("msg_")
    assert body == a_delivery().update.document


@pytest.mark.parametrize("format_", ["plain", "cloudevents", "cloudevents-binary"])
def test_a_trace_context_goes_on_as_a_header(format_: str) -> None:
    """Also where a template names another one; without a context it says what it likes."""
    context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    form = CallbackForm("s", "http://h/", format_, {"headers": {"TraceParent": "mine"}})
    without = form.request(an_outgoing(), 1).headers
    headers = form.request(an_outgoing()._replace(trace=context), 1).headers

    assert without["TraceParent"] == "mine"
    assert "traceparent" not in without
    assert headers["traceparent"] == context
    assert "TraceParent" not in headers


def test_cloud_events_are_structured_or_binary() -> None:
    _, ((_, _, body),) = called(CallbackForm("s", "http://HOST/", "cloudevents"))
    _, ((_, headers, plain),) = called(CallbackForm("s", "http://HOST/", "cloudevents-binary"))

    event = json.loads(body)
    assert event["specversion"] == "1.0"
    assert event["source"] == "/pump/streams/flow"
    assert event["data"] == json.loads(a_delivery().update.document)
    assert headers["ce-id"] == event["id"]
    assert plain == a_delivery().update.document


def test_the_originals_templates_are_filled() -> None:
    """With what the update says, which can be no more than a part of it."""
    fields = {
        "aliases": [{"@t@": "{$.channels.t.current-value}"}],
        "method": "PUT",
        "headers": {"X-Value": "v@t@", "Content-Type": "text/plain"},
        "body": '{"value":@t@,"gone":"{$.channels.x.current-value}"}',
    }
    _, ((line, headers, body),) = called(CallbackForm("s", "http://HOST/in?t=@t@", fields=fields))

    assert line == "PUT /in?t=4 HTTP/1.1"
    assert headers["x-value"] == "v4"
    assert headers["content-type"] == "text/plain"
    assert body == b'{"value":4,"gone":""}'


@pytest.mark.parametrize(
    ("escape", "expected"),
    [
        (for_address, "a%2F..%2F%3Fx%3D1%26%0D%0A%22%7B%24.v%7D"),
        (for_header, 'a/../?x=1&  "{$.v}'),
        (for_body, 'a/../?x=1&\\r\\n\\"{$.v}'),
    ],
)
def test_a_value_stays_a_value(escape: Callable[[str], str], expected: str) -> None:
    update = {"v": 'a/../?x=1&\r\n"{$.v}'}
    assert filled("{$.v}", {}, update, escape, Budget()) == expected


def test_a_template_cannot_say_where_a_request_ends_or_who_signed_it() -> None:
    """A second header of ours would be the tenant's word for our signature."""
    headers = {"content-length": "1", "Transfer-Encoding": "chunked", "Host": "inside"}
    headers |= {"Webhook-Id": "msg_x", "WEBHOOK-SIGNATURE": "v1,x", "content-type": "text/x"}
    form = CallbackForm("s", "http://HOST/", fields={"headers": headers})
    answer, ((_, plain, body),) = called(form)
    _, ((_, event, _),) = called(replace(form, format="cloudevents"))

    assert answer.status == HTTPStatus.OK
    assert body == a_delivery().update.document
    assert plain["host"].startswith("127.0.0.1:")
    assert plain["webhook-id"] == f"msg_{a_delivery().id}"
    assert "webhook-signature" not in plain
    assert plain["content-type"] == "text/x"
    assert event["content-type"] == "application/cloudevents+json"


def test_an_answer_may_be_as_bad_as_it_likes() -> None:
    """No redirect is followed, no zip opened, no endless answer read to its end."""
    form = CallbackForm("s", "http://HOST/")
    assert called(form, status=302, headers={"Location": "http://127.0.0.1/"})[0].status == 302
    assert called(form, headers={"Content-Encoding": "gzip"}, body=b"no zip")[0].status == 200
    assert called(form, body=b"x" * 10_000_000)[0].status == 200
    assert called(form, status=429, headers={"Retry-After": "-5"})[0].retry_seconds == 0
    assert called(form, status=429, headers={"Retry-After": "9" * 30})[0].retry_seconds == 3600
    assert called(form, status=429, headers={"Retry-After": "nan"})[0].retry_seconds is None
    assert called(form, raw=b"not http at all\r\n\r\n")[0].status == 0
    assert called(form, raw=b"")[0].status == 0
    assert called(form, headers={f"h{n}": "x" * 1000 for n in range(5_000)})[0].status == 0
