"""Whether a tenant may have more: of what, until when, and nobody else with it."""

from __future__ import annotations

import pytest
from quota_builders import ALL, COUNTED, METERED, Ground

from api.http.quotas import MANY
from ingest.quotas import MAX_KNOWN, SECONDS
from servioticy.domain.quotas import DELIVERIES, READ_SECONDS

OF_SENDERS = [each for each in METERED if each not in (DELIVERIES, READ_SECONDS)]


def test_a_second_of_bytes_comes_at_once_and_one_byte_more_does_not() -> None:
    ground = Ground(update_bytes=100)

    assert ground.send(100) is None
    assert ground.send(1) == "update-bytes"
    assert ground.send(1, tenant=2) is None


def test_so_do_updates_however_short() -> None:
    ground = Ground(updates=3)

    assert ground.send(1, number=2) is None
    assert ground.send(1, number=2) == "updates"
    assert ground.send(1) is None


def test_what_is_refused_is_not_counted() -> None:
    ground = Ground(update_bytes=100, updates=10)
    ground.send(100)
    for _ in range(50):
        ground.send(60)
    ground.clock.now += 0.61

    assert ground.send(60) is None


def test_an_update_larger_than_the_bucket_comes_when_it_is_full() -> None:
    ground = Ground(update_bytes=1)

    assert ground.send(1000) is None
    ground.clock.now += 999
    assert ground.send(1000) == "update-bytes"
    ground.clock.now += 1
    assert ground.send(1000) is None


def test_who_may_have_none_has_none() -> None:
    ground = Ground(updates=0)

    assert ground.send(1) == "updates"


@pytest.mark.parametrize("name", OF_SENDERS)
def test_what_is_metered_ends_at_its_border_until_the_hour_is_over(name: str) -> None:
    ground = Ground()
    ground.store.limits[name] = 50
    ground.store.used[name] = 49
    assert ground.send(1) is None

    ground.store.used[name] = 50
    ground.clock.now += SECONDS
    exceeded = ground.quotas.send(1, 1, 1)

    assert exceeded is not None
    assert (exceeded.quota.name, exceeded.quota.most) == (name, 50)
    assert exceeded.retry_after == (60 if ALL[name].window is None else 1200)
    assert ground.quotas.metered(1, name) == exceeded


def test_who_may_be_given_no_more_may_send_all_the_same() -> None:
    """What comes is stored; what is to be delivered waits."""
    ground = Ground(deliveries=3)
    ground.store.used[DELIVERIES] = 3

    assert ground.send(1) is None
    assert ground.quotas.beyond(1) is None
    exceeded = ground.quotas.metered(1, DELIVERIES)
    assert exceeded is not None
    assert exceeded.retry_after == 1200
    over = {quota.name: why for quota, _, why in ground.quotas.of(1) if why is not None}
    assert over == {DELIVERIES: exceeded}


def test_reads_end_at_their_border_and_all_else_goes_on() -> None:
    """What is stored and what is not stored yet count together."""
    ground = Ground(read_seconds=10)
    ground.store.used[READ_SECONDS] = 8
    ground.quotas.learn([1, 2])
    ground.quotas.has_read(1, 1.5)
    assert ground.quotas.beyond_reading(1) is None
    asked = ground.store.asked

    ground.quotas.has_read(1, 0.5)

    exceeded = ground.quotas.beyond_reading(1)
    assert exceeded is not None
    assert (exceeded.quota.name, exceeded.retry_after) == (READ_SECONDS, 1200)
    assert ground.quotas.beyond_reading(2) is None
    assert ground.store.asked == asked, "no read is a question more"
    assert ground.send(1) is None
    assert ground.quotas.beyond(1) is None


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_counted_ends_at_its_border(name: str) -> None:
    ground = Ground()
    ground.store.limits[name] = 10
    ground.store.counts[name] = 8

    assert ground.add(**{name: 2}) is None
    assert ground.add(**{name: 3}) == name
    ground.store.counts[name] = 99
    assert ground.add(**{name: 0}) is None, "who has too much may change what he has"
    assert ground.add(**{name: -1}) is None


def test_what_is_far_below_its_border_is_not_counted_each_time() -> None:
    ground = Ground(documents=MANY)
    ground.add(documents=1)
    asked = ground.store.asked
    assert ground.add(documents=1) is None
    assert ground.store.asked == asked

    ground.store.counts["documents"] = MANY
    ground.clock.now += SECONDS

    assert ground.add(documents=1) == "documents"
    ground.store.counts["documents"] = MANY - 1
    assert ground.add(documents=1) is None, "near the border it is counted each time"


def test_who_may_have_few_is_counted_each_time() -> None:
    """Another process may have added as many since."""
    ground = Ground(documents=MANY - 1)
    ground.add(documents=1)
    ground.store.counts["documents"] = MANY - 1

    assert ground.add(documents=1) == "documents"


def test_it_is_let_go_where_storing_fails() -> None:
    ground = Ground()
    with pytest.raises(ZeroDivisionError), ground.quotas.adding(1, documents=1):
        assert ground.store.held == 1
        _ = 1 / 0

    assert ground.store.held == 0


def test_what_an_operator_says_holds_after_some_seconds_and_asks_are_few() -> None:
    ground = Ground(updates=1)
    ground.send(1)
    ground.store.limits["updates"] = 5
    asked = ground.store.asked
    assert ground.send(1, number=5) == "updates"
    assert ground.store.asked == asked

    ground.clock.now += SECONDS

    assert ground.send(1, number=5) is None
    assert ground.store.asked == asked + 1


def test_who_is_beyond_a_quota_is_known_without_asking() -> None:
    """So that a flood of what is refused waits for nobody."""
    ground = Ground(updates=2)
    assert ground.quotas.beyond(1) is None, "nothing is known of it"
    ground.send(1)
    assert ground.quotas.beyond(1) is None
    ground.send(1)
    asked = ground.store.asked

    exceeded = ground.quotas.beyond(1)

    assert exceeded is not None
    assert exceeded.quota.name == "updates"
    assert ground.store.asked == asked
    ground.clock.now += 0.5
    assert ground.quotas.beyond(1) is None
    assert ground.send(1) is None, "to ask has used up nothing"


def test_a_large_one_is_beyond_a_quota_where_a_small_one_is_not() -> None:
    """So it is refused before it is parsed: a MiB takes as long as many small ones."""
    ground = Ground(update_bytes=100)
    ground.send(60)

    assert ground.quotas.beyond(1, 40) is None
    exceeded = ground.quotas.beyond(1, 41)
    assert exceeded is not None
    assert exceeded.quota.name == "update-bytes"
    ground.clock.now += 1
    assert ground.quotas.beyond(1, 1000) is None, "the bucket is full: it may come"


@pytest.mark.parametrize("name", OF_SENDERS)
def test_what_is_metered_keeps_updates_out_there_too(name: str) -> None:
    ground = Ground()
    ground.store.limits[name] = ground.store.used[name] = 1
    ground.quotas.learn([1])

    exceeded = ground.quotas.beyond(1)

    assert exceeded is not None
    assert exceeded.quota.name == name


def test_many_are_learnt_with_one_question_and_only_those_not_known() -> None:
    ground = Ground()
    ground.quotas.learn(range(20))
    assert ground.store.asked == 1
    ground.quotas.learn(range(20))
    assert ground.store.asked == 1
    assert ground.send(1, tenant=19) is None
    assert ground.store.asked == 1

    ground.clock.now += SECONDS
    ground.quotas.learn([3])

    assert ground.store.asked == 2


def test_a_quota_that_others_keep_is_told_as_it_is_for_the_tenant() -> None:
    ground = Ground(requests_waiting=7)
    assert ground.quotas.most(1, "requests-waiting").most == 7
    ground.store.limits["requests-waiting"] = 9
    ground.quotas.learn([1])

    assert ground.quotas.most(1, "requests-waiting").most == 9
    assert ground.quotas.most(2, "requests-waiting").most == 7


def test_all_quotas_are_told_with_what_is_used() -> None:
    ground = Ground(updates=5)
    ground.store.counts["documents"] = 7
    ground.store.used["deliveries"] = 3
    ground.send(10, number=2)

    told = {quota.name: (quota.most, used) for quota, used, _ in ground.quotas.of(1)}

    assert told.keys() == ALL.keys()
    assert told["updates"] == (5, 2)
    assert told["update-bytes"][1] == 10
    assert told["documents"] == (100_000, 7)
    assert told["deliveries"][1] == 3
    assert told["sockets"] == (1000, None)


def test_what_is_known_is_bounded() -> None:
    ground = Ground(updates=1)
    for tenant in range(MAX_KNOWN + 1):
        ground.send(1, tenant)

    assert ground.send(1, 0) is None
    assert ground.send(1, MAX_KNOWN) == "updates"


def test_who_is_silent_for_long_is_forgotten_and_asked_for_again() -> None:
    """Not while others wait for what was let in: a bucket in debt is remembered."""
    ground = Ground(updates=10)
    assert ground.quotas.send(1, 10, 1) is None
    assert ground.quotas.send(2, 1, 1) is None
    asked = ground.store.asked
    ground.clock.now += 0.5
    assert ground.quotas.forget_unused(0.1) == 1, "half of what the first one sent is not back"
    ground.clock.now += 599.0
    assert ground.quotas.forget_unused(600.0) == 0
    ground.clock.now += 0.5

    assert ground.quotas.forget_unused(600.0) == 1
    assert ground.quotas.send(1, 10, 1) is None
    assert ground.store.asked == asked + 1
