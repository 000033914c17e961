"""What steps have done is on the account of whose workflow it is; deliveries, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from workflow_builders import a_queue, a_workflow

from functions import accounts
from functions.accounts import Accounts
from functions.instance import Done
from functions.steps import Task
from servioticy.domain.workflows.model import Workflow
from servioticy.errors import Unavailable
from servioticy.ports.atoms import Work, Works
from servioticy.ports.usage import Given, Spent

CALLS = a_workflow("clean", sink={"callback": {"url": "https://example.org/"}})


class Store:
    def __init__(self) -> None:
        self.works: list[Work] = []
        self.spent: dict[Spent, int] = {}
        self.given: dict[Given, int] = {}
        self.is_away = False
        self.meanwhile: Callable[[], None] = lambda: None

    def note(self, works: Works) -> None:
        self.meanwhile()
        if self.is_away:
            raise Unavailable("away")
        self.works += works

    def spend(self, spent: Mapping[Spent, int]) -> None:
        self.spent.update(spent)

    def deliver(self, counted: Mapping[Given, int]) -> None:
        self.given.update(counted)


def a_task(step: int, read: Workflow = CALLS, **queue: Any) -> Task:
    return Task(a_queue(step=step, **queue), read, "1.0")


def test_what_is_sent_to_a_receiver_is_a_delivery() -> None:
    """Each atom that was taken: not those that failed, nor what comes to another sink."""
    store = Store()
    own = Accounts(store, store)
    own.note(a_task(0), Done(5, 5, 0, 0, 100, 64))
    own.note(a_task(1), Done(3, 0, 2, 0, 0))
    own.note(a_task(1), Done(2, 0, 0, 0, 0))
    own.note(a_task(1, a_workflow("clean"), workflow="other"), Done(9, 0, 0, 0, 0))
    own.settle()

    assert store.given == {Given(1, 1, "workflow:w", "sink"): 5}
    assert store.spent == {Spent(1, "workflow:w", "clean"): 100}
    assert Work(1, "w", "clean", 5, 5, 0, 0, 100, 64) in store.works


def test_nothing_is_lost_while_the_store_is_away() -> None:
    store = Store()
    own = Accounts(store, store)
    own.note(a_task(1), Done(3, 0, 0, 0, 0))
    store.is_away = True
    own.settle()
    assert (store.works, store.given) == ([], {})
    own.note(a_task(1), Done(1, 0, 0, 0, 0))
    store.is_away = False
    own.settle()
    own.settle()

    assert [each.atoms for each in store.works] == [4]
    assert list(store.given.values()) == [4]


def test_so_many_steps_are_counted_while_it_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MAX_COUNTED", 2)
    store = Store()
    own = Accounts(store, store)
    for name in ("a", "b", "c"):
        own.note(a_task(1, workflow=name), Done(1, 0, 0, 0, 0))
    own.settle()

    assert sorted(each.workflow for each in store.works) == ["a", "b"]
    assert len(store.given) == 2


def test_what_is_noted_while_it_does_not_answer_counts_among_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else receivers would be added without end, as long as it is away."""
    monkeypatch.setattr(accounts, "MAX_COUNTED", 2)
    store = Store()
    own = Accounts(store, store)

    def note(*names: str) -> None:
        for each in names:
            own.note(a_task(1, workflow=each), Done(1, 0, 0, 0, 0))

    note("a", "b")
    store.is_away, store.meanwhile = True, lambda: note("b", "c")
    own.settle()
    store.is_away, store.meanwhile = False, lambda: None
    own.settle()

    assert {each.service_object: count for each, count in store.given.items()} == {
        "workflow:b": 2,
        "workflow:c": 1,
    }
