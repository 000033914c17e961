"""What becomes of what a receiver does not take."""

from __future__ import annotations

import asyncio

from callback_receivers import (
    STREAM,
    Answers,
    Dead,
    a_feed,
    an_update,
)
from support.evaluating import an_evaluator
from support.memory_feeds import USED_UP

from delivery.callbacks.receiver import GIVE_UP_SECONDS, REFUSALS, STOP_SECONDS, Callbacks
from servioticy.ports.dead_deliveries import DeadDelivery


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
        callbacks = Callbacks(answers, kept, an_evaluator(), answers.sleep, lambda: answers.now)
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


def test_what_is_dead_is_not_tried_again_while_its_tenant_may_have_nothing() -> None:
    async def run() -> None:
        feed, dead, answers = a_feed(), Dead(), Answers(200)
        dead.again = [DeadDelivery("d", STREAM, an_update(5).update)]
        feed._fanout.resting.change({feed.tenant: USED_UP})
        callbacks = Callbacks(answers, dead, an_evaluator(), answers.sleep, lambda: answers.now)
        receiving = asyncio.create_task(callbacks.receive(feed))
        await asyncio.sleep(0.05)
        assert answers.bodies == []
        feed._fanout.resting.change({})
        async with asyncio.timeout(20):
            while dead.again:
                await asyncio.sleep(0.002)
        receiving.cancel()

    asyncio.run(run())
