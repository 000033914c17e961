"""The node manager: tenants' programs on this machine, begun, asked, watched and ended.

One thread speaks with all processes (`attending.py`) and never blocks on one; a few others begin
them, because to fetch a program takes time. Here is what others call.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import threading
import time
from collections.abc import Callable, Sequence

from operators import manifest
from operators.attending import Attendant, Bounds
from operators.backoff import Backoff
from operators.instance import Place
from operators.line import Asked, Line, Running, bytes_of, size_of
from operators.room import QUESTION_BYTES, Room
from operators.shelf import Programs
from servioticy.ports.programs import (
    MAX_EVENTS,
    MAX_QUESTION_BYTES,
    MAX_STATE_BYTES,
    Program,
    Question,
    Reply,
)

log = logging.getLogger(__name__)

LONGEST_SLEEP = 1.0
MOST_UNFETCHED_BYTES = 32 * 1024 * 1024
"""Of replies: while more are not fetched no program is asked anything."""

MAX_ID_BYTES = 64
MAX_COMPOSITE = 1000

WARM_UP = "warm-up"
"""What a program is told as the composite that asks, where none does."""
WARM_UP_BYTES = QUESTION_BYTES + manifest.MAX_BYTES

MOST_SPENT = 10_000
"""Streams of which is remembered what their programs have used beside replies: of more, by tenant
alone."""


class Node:
    """Runs programs, as servioticy/ports/programs.py has it."""

    def __init__(
        self,
        programs: Programs,
        place: Place,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.monotonic,
        room: Room | None = None,
    ) -> None:
        """`programs`: where they are. The thread begins with the first question."""
        self._clock = clock
        self._lock = threading.Lock()
        self._answered = threading.Condition(self._lock)
        self._lines: dict[Program, Line] = {}
        self._forgotten: list[Line] = []
        self._replies: list[tuple[Line, Asked, Reply]] = []
        self._open: dict[bytes, Asked | None] = {}
        """Questions that are not answered, with the one that comes after each, if there is."""
        self._room = room or Room()
        self._unfetched = 0
        self._spent: dict[tuple[int, str], float] = {}
        self._attendant = Attendant(
            programs,
            place,
            bounds or Bounds(),
            clock,
            self._deliver,
            self._rouse,
            self._may_ask,
            self._spend,
        )
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        self._attendant.selector.register(self._woken, selectors.EVENT_READ)
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def ask(self, question: Question) -> bool:
        """Take a question, as the port has it."""
        _check(question)
        size, program = size_of(question), question.program
        with self._lock:
            after = question.after
            is_late = after is not None and after not in self._open
            if self._is_closed or is_late or not self._room.take(program.tenant, size):
                return False
            asked = Asked(question, self._clock(), size)
            self._come(asked)
            self._open[question.id] = None
            if after is not None:
                self._open[after] = asked
            self._begin()
        self._rouse()
        return True

    def warm(self, program: Program, payer: str, told: Callable[[str], None]) -> bool:
        """Begin a program, and ask it what its manifest has for a warm-up; False: no room.

        `payer`: the stream for which it is, as a question names one. `told` is called once, in
        another thread, with "" or what is wrong. It may not block.
        """
        question = Question(b"", program, WARM_UP, None, ())
        with self._lock:
            if self._is_closed or not self._room.take(program.tenant, WARM_UP_BYTES):
                return False
            self._come(Asked(question, self._clock(), WARM_UP_BYTES, told=told, payer=payer))
            self._begin()
        self._rouse()
        return True

    def replies(self, wait_seconds: float) -> Sequence[Reply]:
        """Return what has been answered, as the port has it."""
        with self._answered:
            if not self._replies and wait_seconds > 0:
                self._answered.wait_for(lambda: self._replies or self._is_closed, wait_seconds)
            found, self._replies = self._replies, []
            for line, asked, _ in found:
                self._room.give_back(line.program.tenant, asked.size)
            self._unfetched = 0
        if found:
            self._rouse()
        return [reply for line, _, reply in found if not line.is_forgotten]

    def forget(self, program: Program) -> None:
        """End a program, as the port has it."""
        with self._lock:
            line = self._lines.pop(program, None)
            if line is None:
                return
            line.is_forgotten = True
            self._forgotten.append(line)
        self._rouse()

    def spent(self) -> dict[tuple[int, str], float]:
        """Return what programs have used since the last call of which no reply tells.

        In seconds of the processor, by tenant and by the stream that has asked last, as questions
        name it.
        """
        with self._lock:
            found, self._spent = self._spent, {}
        return found

    def close(self) -> None:
        """End all, and wait until all are gone."""
        with self._answered:
            self._is_closed = True
            self._answered.notify_all()
        self._rouse()
        if self._thread is not None:
            self._thread.join()
        self._attendant.close([*self._lines.values(), *self._forgotten])
        os.close(self._woken)
        os.close(self._wake)

    def running(self) -> list[Running]:
        """Return what is known of each program that was asked lately."""
        with self._lock:
            lines = list(self._lines.values())
        now = self._clock()
        return [each.running(now) for each in lines]

    @property
    def room_taken(self) -> int:
        """Bytes of questions that are open or whose replies nobody has fetched."""
        return self._room.taken

    def _come(self, asked: Asked) -> None:
        program = asked.question.program
        line = self._lines.get(program)
        if line is None:
            line = self._lines[program] = Line(program, used=self._clock())
        line.come.append(asked)
        line.payer = asked.whose

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="operators", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        backoff = Backoff()
        while not self._is_closed:
            events = self._attendant.selector.select(0)
            pause = None if events else backoff.seconds()
            if pause is not None:
                time.sleep(pause)
                continue
            if not events:
                events = self._attendant.selector.select(self._until_next())
            backoff.worked()
            try:
                self._turn(events)
            except Exception:
                log.exception("operators_turn_failed")
                time.sleep(LONGEST_SLEEP)

    def _turn(self, events: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, _ in events:
            if key.data is None:
                os.read(self._woken, 4096)
            else:
                self._attendant.hear(*key.data)
        with self._lock:
            forgotten, self._forgotten = self._forgotten, []
            lines = list(self._lines.values())
            for line in (*lines, *forgotten):
                line.waiting += line.come
                line.come.clear()
        for line in forgotten:
            left = self._attendant.forget(line)
            with self._lock:
                for each in left:
                    self._open.pop(each.question.id, None)
                    self._room.give_back(line.program.tenant, each.size)
            for each in left:
                if each.told is not None:
                    each.told("it is asked no more")
        for program in self._attendant.attend(lines):
            with self._lock:
                found = self._lines.get(program)
                if found is not None and not found.come:
                    del self._lines[program]

    def _until_next(self) -> float:
        until = self._attendant.next_time
        pause = LONGEST_SLEEP if until is None else until - self._clock()
        return max(0.0, min(pause, LONGEST_SLEEP))

    def _deliver(self, line: Line, asked: Asked, reply: Reply) -> None:
        if asked.told is not None:
            with self._lock:
                self._room.give_back(line.program.tenant, asked.size)
            asked.told(reply.error)
            return
        with self._answered:
            after = self._open.pop(reply.id, None)
            if after is not None:
                after.question = after.question._replace(state=reply.state, after=None)
            self._replies.append((line, asked, reply))
            self._unfetched += bytes_of(reply)
            self._answered.notify_all()

    def _spend(self, line: Line, seconds: float) -> None:
        tenant = line.program.tenant
        with self._lock:
            spent = self._spent
            is_known = (tenant, line.payer) in spent or len(spent) < MOST_SPENT
            key = tenant, line.payer if is_known else ""
            spent[key] = spent.get(key, 0.0) + seconds

    def _may_ask(self) -> bool:
        return self._unfetched < MOST_UNFETCHED_BYTES

    def _rouse(self) -> None:
        with contextlib.suppress(OSError):  # full, or closed: it is awake
            os.write(self._wake, b".")


def _check(question: Question) -> None:
    """Raise ValueError where a question is larger than may be."""
    if len(question.id) > MAX_ID_BYTES or len(question.composite) > MAX_COMPOSITE:
        raise ValueError("too long an id, or name of a composite")
    if not 1 <= len(question.events) <= MAX_EVENTS:
        raise ValueError(f"{len(question.events)} events, from 1 to {MAX_EVENTS}")
    if sum(map(len, question.events)) > MAX_QUESTION_BYTES:
        raise ValueError(f"events of more than {MAX_QUESTION_BYTES} bytes")
    if len(question.state or b"") > MAX_STATE_BYTES:
        raise ValueError(f"a state of more than {MAX_STATE_BYTES} bytes")
