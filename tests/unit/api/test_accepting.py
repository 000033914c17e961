"""What keeps updates out of the log, whatever way they come."""

from __future__ import annotations

from quota_builders import Ground

from ingest.updates_waiting import SECONDS, UpdatesWaiting
from servioticy.ports.addresses import Address


class History:
    """Of tenant 7 so many updates wait in partition 1."""

    def __init__(self, waiting: int) -> None:
        self.waiting = waiting
        self.asked = 0

    def put_off(self, partition: int, tenant: int, most: int) -> int:
        self.asked += 1
        return min(most, self.waiting if (partition, tenant) == (1, 7) else 0)


def test_updates_are_refused_where_too_many_wait() -> None:
    """Of the tenant's own, in that partition; asked at most once a second."""
    ground, history = Ground(updates_waiting=3), History(3)
    waiting = UpdatesWaiting(history, ground.quotas, ground.clock)  # type: ignore[arg-type]
    address = Address(7, "so", 7, False, 1, 1, 5)

    found = [waiting.beyond(address) for _ in range(2)]
    assert [each and (each.quota.name, each.quota.most) for each in found] == [
        ("updates-waiting", 3)
    ] * 2
    assert waiting.beyond(address._replace(owner=8)) is None
    assert history.asked == 2
    history.waiting = 2
    ground.clock.now += SECONDS + 0.1
    assert waiting.beyond(address) is None
    assert history.asked == 3


def test_what_did_not_come_is_given_back() -> None:
    ground = Ground(updates=1, update_bytes=10)

    assert ground.send(10) is None
    ground.quotas.give_back(1, 1, 10)
    assert ground.send(10) is None
    assert ground.send(10) == "updates"
