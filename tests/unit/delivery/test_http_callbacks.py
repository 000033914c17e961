"""HTTP callbacks: what is sent, to whom, and what becomes of what is not taken."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

import pytest
from callback_receivers import Receiver, a_feed, an_update

from delivery.callbacks.addresses import ForbiddenAddress, Rules
from delivery.callbacks.caller import Answer, Caller
from delivery.callbacks.lookups import TENANT, Lookups
from delivery.callbacks.receiver import GIVE_UP_SECONDS, REFUSALS, STOP_SECONDS, Callbacks
from delivery.callbacks.requests import CallbackForm, Outgoing, outgoing
from delivery.callbacks.signing import signed_headers
from delivery.callbacks.templates import (
    MAX_PATHS,
    TemplateTooLong,
    filled,
    for_address,
    for_body,
    for_header,
)
from delivery.feeds.deliveries import Delivery
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.webhook_secrets import BadSecret, exchanged, in_force, key_of, new_secret
from servioticy.ports.dead_deliveries import DeadDelivery, Trouble

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STREAM = StreamRef("pump", "flow")
INSIDE = """
    127.0.0.1 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1
    255.255.255.255 168.63.129.16 192.0.0.192 198.18.0.1 240.0.0.1 :: ::1 ::127.0.0.1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1:: fe80::1
    fc00::1 fd00:ec2::254 ff02::1 fec0::1 2001:0:7f00:1:: 2001:db8::1 192.88.99.1
    localhost 1.2.3
"""
WRITTEN = """
    127.0.0.1 127.1 2130706433 0x7f000001 0177.0.0.1 127.0.0.1. localhost localhost. [::1]
    [::ffff:127.0.0.1] [::ffff:7f00:1] 0 [::]
"""
FULL_WIDTH = "".join(chr(ord(each) + 0xFEE0) if each.isdigit() else each for each in "127.0.0.1")
BAD_SECRETS = ["", "whsec_", "whsec_AAAA", "MfKQ9r8G", "whsec_*", "whsec_" + "A" * 200]
Got = list[tuple[str, dict[str, str], bytes]]


def a_delivery(
    document: bytes = b'{"channels":{"t":{"current-value":4}},"lastUpdate":5}',
) -> Delivery:
    return Delivery(STREAM, LastUpdate(5, document), None)


def an_outgoing() -> Outgoing:
    return outgoing(a_delivery())


def test_the_published_vector_is_met() -> None:
    """That of the specification of Standard Webhooks."""
    body = b'{"test": 2432232314}'
    headers = signed_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, [SECRET])

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_while_a_secret_is_exchanged_both_sign() -> None:
    other = "whsec_" + "A" * 32
    signature = signed_headers("m", 1, b"{}", [SECRET, other])["webhook-signature"]

    assert [each[:3] for each in signature.split()] == ["v1,", "v1,"]
    assert len(set(signature.split())) == 2


def test_the_secret_before_is_good_for_a_day() -> None:
    day = 24 * 3_600_000
    first = exchanged([], new_secret(), 0)
    second = exchanged(first, new_secret(), 5)
    third = exchanged(second, new_secret(), 6)

    assert len(in_force(second, day)) == 2
    assert in_force(second, day + 5) == (second[0]["secret"],)
    assert in_force(third, 7) == (third[0]["secret"], second[0]["secret"])
    assert len(key_of(third[0]["secret"])) == 32


@pytest.mark.parametrize("secret", BAD_SECRETS)
def test_what_is_no_secret_signs_nothing(secret: str) -> None:
    with pytest.raises(BadSecret):
        key_of(secret)


@pytest.mark.parametrize("address", INSIDE.split())
def test_what_is_inside_is_not_called(address: str) -> None:
    with pytest.raises(ForbiddenAddress):
        Rules().check(address, 443)


@pytest.mark.parametrize("port", [0, 22, 25, 5432, 6379, 9092, 65536])
def test_what_is_no_web_server_is_not_called(port: int) -> None:
    Rules().check("8.8.8.8", 443)
    with pytest.raises(ForbiddenAddress):
        Rules().check("8.8.8.8", port)


def test_what_an_operator_allows_may_be_called() -> None:
    rules = Rules(["127.0.0.0/8"])
    rules.check("127.0.0.1", 12345)
    with pytest.raises(ForbiddenAddress):
        rules.check("10.0.0.1", 80)


@pytest.mark.parametrize("host", [*WRITTEN.split(), FULL_WIDTH])
def test_no_way_of_writing_leads_inside(host: str) -> None:
    """Whatever the caller makes of it, a canary on loopback hears nothing."""

    async def run() -> None:
        async with Receiver() as canary:
            caller = Caller()
            await caller.start()
            form = CallbackForm("s", f"http://{host}:{canary.port}/")
            answer = await caller.call(form.request(an_outgoing(), 1), 7)
            await caller.stop()
            assert answer.status == 0
            assert canary.requests == []

    asyncio.run(run())


def called(form: CallbackForm, **behaviour: object) -> tuple[Answer, Got]:
    """Call a receiver once; return the answer and what it got."""

    async def run() -> tuple[Answer, Got]:
        async with Receiver(**behaviour) as receiver:
            caller = Caller(["127.0.0.0/8"])
            await caller.start()
            url = form.url.replace("HOST", f"127.0.0.1:{receiver.port}")
            request = CallbackForm(
                form.subscription, url, form.format, form.fields, form.secrets
            ).request(an_outgoing(), 1614265330)
            answer = await caller.call(request, 7)
            await caller.stop()
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
    assert filled("{$.v}", {}, update, escape) == expected


def test_aliases_do_not_grow_without_end() -> None:
    aliases = {chr(97 + n): chr(98 + n) * 40 for n in range(10)}
    with pytest.raises(TemplateTooLong):
        filled("a", aliases, {}, for_body)


def test_a_text_that_is_too_long_is_never_made() -> None:
    """Neither by an alias nor by a reference that stands in it a thousand times."""
    tracemalloc.start()
    with pytest.raises(TemplateTooLong):
        filled("a" * 10_000, {"a": "b" * 10_000}, {}, for_body)
    with pytest.raises(TemplateTooLong):
        filled("{$.v}" * 900, {}, {"v": "x" * 100_000}, for_body)
    with pytest.raises(TemplateTooLong):
        filled("{$.v}" * (MAX_PATHS + 1), {}, {}, for_body)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 2_000_000


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


def test_who_looks_names_up_for_long_keeps_others_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its lookups have places of its own, and the threads of stores are not theirs."""
    answers = threading.Event()

    def slow(host: str, *_args: object, **_more: object) -> list[object]:
        assert host != "slow" or answers.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def run() -> None:
        lookups = Lookups(threads=3, each=2)
        TENANT.set(1)
        slow_ones = [
            asyncio.create_task(lookups.look_up("slow", 80, socket.AF_INET)) for _ in range(9)
        ]
        await asyncio.sleep(0)
        for each in slow_ones[:2]:
            each.cancel()  # nobody waits any more, and its thread is still taken
        TENANT.set(2)
        async with asyncio.timeout(20):
            assert await lookups.look_up("quick", 80, socket.AF_INET) == []
        answers.set()
        await asyncio.gather(*slow_ones, return_exceptions=True)
        lookups.stop()

    asyncio.run(run())


def test_one_tenants_hanging_host_is_nobody_elses() -> None:
    """Several tenants have receivers at the same provider."""

    class Hanging(Answers):
        async def call(self, request: object, tenant: int) -> Answer:
            if tenant == 1:
                await asyncio.Event().wait()
            return await super().call(request, tenant)

    async def run() -> None:
        callbacks = Callbacks(Hanging(200), Dead())
        form = CallbackForm("s", "http://example.org/a")
        hanging = [
            asyncio.create_task(callbacks.attempt(1, form, an_outgoing())) for _ in range(100)
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            assert (await callbacks.attempt(2, form, an_outgoing())).status == HTTPStatus.OK
        for each in hanging:
            each.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)

    asyncio.run(run())


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


class Dead:
    """Dead deliveries in memory."""

    def __init__(self) -> None:
        self.buried: list[tuple[DeadDelivery, str]] = []
        self.troubles: list[tuple[Trouble | None, bool]] = []
        self.again: list[DeadDelivery] = []

    def bury(self, _tenant: int, _id: str, dead: DeadDelivery, reason: str, _now: int) -> None:
        self.buried.append((dead, reason))

    def to_redrive(self, _tenant: int, _id: str) -> list[DeadDelivery]:
        return list(self.again)

    def revived(self, _tenant: int, _id: str, delivery: str) -> None:
        self.again = [each for each in self.again if each.id != delivery]

    def trouble(
        self, _tenant: int, _id: str, trouble: Trouble | None, *, stop: bool = False
    ) -> None:
        self.troubles.append((trouble, stop))


class Answers(Caller):
    """A caller that hears what a test says, the last of it for ever, in no time."""

    def __init__(self, *statuses: int, seconds: float = 1.0) -> None:
        super().__init__()
        self.statuses = list(statuses)
        self.seconds = seconds
        self.now = 0.0
        self.bodies: list[bytes] = []

    async def call(self, request: object, _tenant: int) -> Answer:
        self.now += self.seconds
        self.bodies.append(request.body)  # type: ignore[attr-defined]
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return Answer(status, "said the receiver")

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def delivered(
    answers: Answers,
    updates: int = 2,
    dead: Dead | None = None,
    failing_since_ms: int | None = None,
) -> Dead:
    """Deliver so many updates, or as many as the receiver lets us."""
    kept = dead or Dead()

    async def run() -> None:
        feed = a_feed(failing_since_ms)
        callbacks = Callbacks(answers, kept, answers.sleep, lambda: answers.now)
        task = asyncio.create_task(callbacks.receive(feed))
        for at in range(1, updates + 1):
            feed.offer(an_update(at))
        async with asyncio.timeout(20):
            while not task.done() and feed.place.lag({0: updates}):
                feed.note_stored(feed.place.stored())
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    return kept


def test_what_is_not_taken_now_is_tried_again_in_order() -> None:
    answers = Answers(500, 0, 429, 200)
    dead = delivered(answers)

    assert answers.bodies == [an_update(1).update.document] * 4 + [an_update(2).update.document]
    assert dead.buried == []
    assert [each[0] and each[0].status for each in dead.troubles] == [500, 0, 429, None]


def test_what_is_refused_is_kept_and_the_next_one_goes_on() -> None:
    answers = Answers(*[422] * REFUSALS, 200)
    dead = delivered(answers)

    assert [each.update.timestamp for each, _ in dead.buried] == [1]
    assert dead.buried[0][1] == "422 said the receiver"
    assert answers.bodies[-1] == an_update(2).update.document


def test_who_is_gone_is_not_called_again() -> None:
    answers = Answers(410)
    dead = delivered(answers)

    assert len(answers.bodies) == 1
    assert dead.troubles[-1][1]
    assert dead.buried == []


def test_who_is_down_for_long_is_given_up() -> None:
    """An update first, and after some days the receiver."""
    answers = Answers(503, seconds=100.0)
    dead = delivered(answers, updates=50)

    assert answers.now > STOP_SECONDS
    assert len(dead.buried) == STOP_SECONDS // GIVE_UP_SECONDS - 1
    assert dead.troubles[-1][1]


def test_a_restart_forgets_no_trouble() -> None:
    """It ends with the first success, and its days count on."""
    well = delivered(Answers(200), 1, failing_since_ms=0)
    assert well.troubles == [(None, False)]

    since_long = delivered(Answers(503), 1, failing_since_ms=-int(STOP_SECONDS * 1000))
    assert since_long.troubles[-1][1]
    assert len(since_long.troubles) == 1


def test_what_died_is_delivered_once_more() -> None:
    dead = Dead()
    update = an_update(9)
    dead.again = [DeadDelivery("d", STREAM, update.update)]
    answers = Answers(200)
    delivered(answers, 1, dead)

    assert answers.bodies == [update.update.document, an_update(1).update.document]
    assert dead.again == []
