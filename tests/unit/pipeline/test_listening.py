"""Answers of programs wake who computes; no more are held than were fetched at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pipeline.spark.listening import Listener
from servioticy.ports.programs import Program, Question, Reply

SECONDS = 60.0
QUESTION = Question(b"1", Program(1, "p", 1), "so/s", None, [b"{}"])


def a_reply(number: int) -> Reply:
    return Reply(b"%d" % number, (), None, "", 0.0)


class Two:
    """Has one reply at a time, two in all."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self._left = [[a_reply(2)], [a_reply(1)]]
        self.closed = threading.Event()

    def ask(self, question: Question) -> bool:
        self.asked.append(question)
        return True

    def replies(self, _wait_seconds: float) -> Sequence[Reply]:
        if self._left:
            return self._left.pop()
        self.closed.wait(SECONDS)
        return ()

    def forget(self, _program: Program) -> None:
        raise AssertionError

    def close(self) -> None:
        self.closed.set()


def test_what_is_answered_wakes_and_is_fetched_in_order() -> None:
    woken = threading.Semaphore(0)
    programs = Two()
    listener = Listener(programs, woken.release)

    assert list(listener.replies(0)) == [], "nothing has begun"
    assert listener.ask(QUESTION)
    assert woken.acquire(timeout=SECONDS)
    assert [each.id for each in listener.replies(0)] == [b"1"]
    assert woken.acquire(timeout=SECONDS)
    assert [each.id for each in listener.replies(0)] == [b"2"]
    assert list(listener.replies(0)) == []
    listener.close()
    assert programs.asked == [QUESTION]


def test_what_nobody_fetches_does_not_keep_it_from_closing() -> None:
    woken = threading.Semaphore(0)
    listener = Listener(Two(), woken.release)
    listener.ask(QUESTION)
    assert woken.acquire(timeout=SECONDS)

    listener.close()  # it holds another one
