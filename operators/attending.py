"""Attends to processes: who is begun, what each is asked, and what is done when one fails.

All of it is one thread's, and nothing of it waits. What a program does is bounded: until it is
ready, until it has answered, in what it sends and prints, in how often it is begun again.
"""

from __future__ import annotations

import logging
import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from operators.errors import Misbehaved, NotAnOperator
from operators.guest.launch import NOT_PROTECTED
from operators.instance import Instance, Place
from operators.line import MOST_STARTS, Asked, Line
from operators.places import Holder, Waiting, giving_way, next_one
from operators.shelf import Programs
from operators.wire import Spelling, failed, replies
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program, Question, Reply

log = logging.getLogger(__name__)

STARTERS = 2
"""Threads that begin processes."""

SETTLE_SECONDS = 5.0
"""So often it is looked what programs have used that nobody asks: no reply tells of that."""

PRINTING_SECONDS = 0.1
"""So often what programs print is looked at: who prints for ever is held back by its pipe."""

LOOK_SECONDS = 0.1
"""So often it is looked whether there is a place for who waits for one."""

READY = Reply(b"", (), None, "", 0.0)
"""To who asked for a warm-up alone."""

UNAVAILABLE_SECONDS = 1.0
UNPROTECTED_SECONDS = 30.0
FORGOTTEN_SECONDS = 3600.0
"""Of a program that nobody asks it is known for so long how it did."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many processes there are, and for how long."""

    places: int = 8
    start_seconds: float = 30.0
    idle_seconds: float = 300.0


class Attendant:
    """Attends to the processes of a node."""

    def __init__(
        self,
        programs: Programs,
        place: Place,
        bounds: Bounds,
        clock: Callable[[], float],
        deliver: Callable[[Line, Asked, Reply], None],
        rouse: Callable[[], None],
        may_ask: Callable[[], bool],
        spend: Callable[[Line, float], None],
    ) -> None:
        """`deliver` is given replies, `rouse` called by other threads when there is work.

        `spend` is told what a program has used of which no reply tells.

        `may_ask`: False while so many replies have not been fetched that nothing is asked.
        """
        self._programs = programs
        self._place = place
        self._bounds = bounds
        self._clock = clock
        self._deliver = deliver
        self._rouse = rouse
        self._may_ask = may_ask
        self._spend = spend
        self._begun: deque[tuple[Line, Instance | Exception]] = deque()
        self._dying: list[tuple[Line, Instance]] = []
        self._starters = ThreadPoolExecutor(STARTERS, "operators-start")
        self._next_print = 0.0
        self._next_settle = 0.0
        self.selector = selectors.DefaultSelector()
        self.next_time: float | None = None
        """When there is something to do though nothing comes."""

    def hear(self, line: Line, instance: Instance, is_socket: bool) -> None:
        """Take in what a process sends, or what is said of its beginning."""
        if line.instance is not instance:
            return
        if not is_socket:
            if not instance.read_status():
                self.selector.unregister(instance.status)
            if instance.failed:
                self._not_begun(line, instance.failed)
            return
        try:
            instance.flush()
            for body in instance.frames():
                self._heard(line, instance, body)
            self._listen(line, instance)
        except (Misbehaved, OSError) as error:
            self._fail(line, str(error))
        except Exception:  # noqa: BLE001  logged there
            self._failed_ours(line)

    def attend(self, lines: Sequence[Line]) -> list[Program]:
        """Do what there is to do; return programs of which nothing needs to be known any more."""
        now = self._clock()
        while self._begun:
            self._take_in(*self._begun.popleft())
        self._read_prints(lines, now)
        for line in lines:
            try:
                self._look_at(line, now)
            except Exception:  # noqa: BLE001  logged there
                self._failed_ours(line)
        self._hand_out(lines, now)
        self._bury()
        self._settle(lines, now)
        times = [each for line in lines for each in self._times(line, now)]
        self.next_time = min(times, default=None)
        return [
            each.program
            for each in lines
            if not each.is_busy and now - each.used > FORGOTTEN_SECONDS
        ]

    def forget(self, line: Line) -> list[Asked]:
        """End its process; return what is not answered."""
        self._end(line)
        left = [*line.waiting, *line.asked.values()]
        line.waiting.clear()
        line.asked.clear()
        return left

    def close(self, lines: Sequence[Line]) -> None:
        """End all, and wait until all are gone. Nobody else calls anything any more."""
        self._starters.shutdown()
        for line in lines:
            self._end(line)
        for line, begun in self._begun:
            if isinstance(begun, Instance):
                begun.end()
                self._dying.append((line, begun))
        while self._dying:
            self._bury()
            time.sleep(0.005)
        self.selector.close()

    # Beginning and ending.

    def _hand_out(self, lines: Sequence[Line], now: float) -> None:
        while True:
            holders = [
                Holder(each.program, each.serving_since, each.is_idle, each.is_leaving)
                for each in lines
                if each.has_place
            ]
            waiting = [
                Waiting(each.program, each.waiting[0].came)
                for each in lines
                if each.waiting and not each.has_place and now >= each.not_before
            ]
            by_program = {each.program: each for each in lines}
            places = self._bounds.places
            if chosen := next_one(holders, waiting, places):
                self._start(by_program[chosen])
                continue
            if leaving := giving_way(holders, waiting, places, now):
                line = by_program[leaving]
                if line.is_idle:
                    self._end(line)
                    continue
                line.is_leaving = True
            return

    def _start(self, line: Line) -> None:
        line.is_starting = True
        self._starters.submit(self._fetch, line)

    def _fetch(self, line: Line) -> None:
        """Begin a process; in a thread of its own."""
        begun: Instance | Exception
        try:
            described, folder = self._programs.folder(line.program)
            line.described, line.spelling = described, Spelling(described.message)
            begun = self._place.begun(described, folder)
        except Exception as error:  # noqa: BLE001  told to who attends
            begun = error
        self._begun.append((line, begun))
        self._rouse()

    def _take_in(self, line: Line, begun: Instance | Exception) -> None:
        now = self._clock()
        line.is_starting = False
        if isinstance(begun, NotAnOperator):
            line.starts_failed = MOST_STARTS
            self._note_failed_start(line, str(begun))
        elif isinstance(begun, Exception):
            if not isinstance(begun, Unavailable):
                log.warning("operator_not_begun", extra={"reason": repr(begun)})
            line.problem = "the platform could not begin it"
            line.not_before = now + UNAVAILABLE_SECONDS
        elif line.is_forgotten:
            begun.end()
            self._dying.append((line, begun))
        else:
            line.instance = begun
            line.until = now + self._bounds.start_seconds
            self.selector.register(begun.status, selectors.EVENT_READ, (line, begun, False))
            self.selector.register(begun.socket, selectors.EVENT_READ, (line, begun, True))

    def _not_begun(self, line: Line, reason: str) -> None:
        if not reason.startswith(NOT_PROTECTED):
            self._fail(line, reason)
            return
        log.warning("operators_not_protected", extra={"reason": reason})
        self._end(line)
        line.problem = "this machine cannot enclose programs: its operator has to look"
        line.not_before = self._clock() + UNPROTECTED_SECONDS
        for asked in line.warm_ups():
            self._deliver_failed(line, asked, line.problem)

    def _fail(self, line: Line, reason: str) -> None:
        """End a process that has failed, and ask what it was asked again: of another one."""
        instance = line.instance
        if instance is not None and instance.lost:
            self._lose(line, instance.lost)
            return
        was_ready = instance is not None and instance.is_ready
        self._end(line)
        reason = f"{reason}{line.last_words()}"
        line.problem = reason
        line.note_failure(self._clock())
        log.info("operator_failed", extra={"operator": line.program.name, "reason": reason[:200]})
        for blamed in (*line.put_back(), *line.warm_ups()):
            self._deliver_failed(line, blamed, reason)
        if not was_ready:
            line.starts_failed += 1
            self._note_failed_start(line, reason)

    def _lose(self, line: Line, reason: str) -> None:
        """End a process that cannot be reached, and ask what it was asked again: of another."""
        self._end(line)
        line.problem = f"it could not be reached: {reason}"
        line.note_failure(self._clock())
        line.put_back(blame=False)
        log.warning("operator_lost", extra={"operator": line.program.name, "reason": reason[:200]})

    def _failed_ours(self, line: Line) -> None:
        """Go on behind a fault of ours: the others are attended to."""
        log.exception("operator_not_attended", extra={"operator": line.program.name})
        self._fail(line, "the platform could not attend to it")

    def _deliver_failed(self, line: Line, asked: Asked, reason: str) -> None:
        self._deliver_paid(line, asked, failed(asked.question, reason))

    def _deliver_paid(self, line: Line, asked: Asked, reply: Reply) -> None:
        """With the time that it has taken; that of a warm-up is settled."""
        seconds = 0.0 if asked.told else line.pay()
        self._deliver(line, asked, reply._replace(processor_seconds=seconds))

    def _note_failed_start(self, line: Line, reason: str) -> None:
        line.problem = reason
        line.not_before = max(line.not_before, self._clock() + line.rest_seconds())

    def _end(self, line: Line) -> None:
        instance, line.instance = line.instance, None
        line.is_warm = False
        line.until = None
        line.is_leaving = False
        if instance is None:
            return
        line.unpaid += instance.take_used()
        for each in (instance.status, instance.socket):
            if each in self.selector.get_map():
                self.selector.unregister(each)
        instance.end()
        line.printed = instance.printed
        self._dying.append((line, instance))

    def _bury(self) -> None:
        """Look who has ended. What was used and could not be read before then is paid for now."""
        dying, self._dying = self._dying, []
        for line, instance in dying:
            if not instance.is_gone():
                self._dying.append((line, instance))
                continue
            line.unpaid += instance.take_used()
            if line.is_forgotten:
                self._spend_unpaid(line)

    def _settle(self, lines: Sequence[Line], now: float) -> None:
        """Say what programs have used while nobody asked them, as with a warm-up."""
        if now < self._next_settle:
            return
        self._next_settle = now + SETTLE_SECONDS
        for line in lines:
            if line.asked or line.waiting:
                continue  # the reply tells of it
            if line.instance is not None:
                line.unpaid += line.instance.take_used()
            self._spend_unpaid(line)

    def _spend_unpaid(self, line: Line) -> None:
        if used := line.pay():
            self._spend(line, used)

    # Asking and being answered.

    def _look_at(self, line: Line, now: float) -> None:
        instance = line.instance
        if line.starts_failed >= MOST_STARTS and now < line.not_before:
            for asked in line.waiting:
                self._deliver_failed(line, asked, line.problem)
            line.waiting.clear()
        if instance is None:
            return
        if line.is_warm:
            for asked in line.warm_ups():
                self._deliver(line, asked, READY)
        if line.until is not None and now >= line.until:
            what = "answered" if instance.is_ready else "begun"
            self._fail(line, f"it has not {what} in time")
        elif instance.is_ready and not line.asked:
            idle = not line.waiting and now - line.used > self._bounds.idle_seconds
            if line.is_leaving or idle:
                self._end(line)
            elif self._may_ask():
                self._ask(line, instance, now)

    def _ask(self, line: Line, instance: Instance, now: float) -> None:
        taken = line.take(now)
        if not taken or line.described is None or line.spelling is None:
            return
        line.used = now
        if taken[0].told is not None:
            events = line.described.warm_up
            if not events:  # that it is ready is all that there is to know
                line.is_warm = True
                self._deliver(line, taken[0], READY)
                return
            taken[0].question = taken[0].question._replace(events=events)
        for each in taken:
            line.next_id += 1
            line.asked[str(line.next_id)] = each
        frame = self._frame(line, line.spelling)
        if not line.asked:
            return
        times = 1 + max(each.attempts for each in taken)
        line.until = now + line.described.manifest.answer_seconds * times
        line.answered_bytes = 0
        try:
            instance.send(frame)
            self._listen(line, instance)
        except OSError as error:
            self._fail(line, f"it has ended: {error}")

    def _frame(self, line: Line, spelling: Spelling) -> bytes:
        """Return the frame of all that is asked now; what cannot be spelt fails, and goes."""
        try:
            return spelling.frame(_questions(line))
        except Exception:  # noqa: BLE001  whatever it is, the others are asked
            for name, each in list(line.asked.items()):
                try:
                    spelling.frame([(name, each.question)])
                except Exception as error:  # noqa: BLE001  it is told
                    del line.asked[name]
                    self._deliver_failed(line, each, f"it cannot be asked: {error}")
        return spelling.frame(_questions(line))

    def _heard(self, line: Line, instance: Instance, body: bytes) -> None:
        if line.spelling is None:
            return
        said = line.spelling.said(body)
        if said.ready == instance.is_ready or bool(said.replies) != instance.is_ready:
            raise Misbehaved("it says once that it is ready, and then answers only")
        if said.ready:
            instance.is_ready = True
            line.until = None
            line.starts_failed = 0
            line.since = line.used = self._clock()
            return
        line.count_answered(len(body))
        line.unpaid += instance.take_used()
        open_ones = {name: each.question for name, each in line.asked.items()}
        for name, reply in replies(said, open_ones):
            asked = line.asked.pop(name)
            line.is_warm |= not reply.error
            self._deliver_paid(line, asked, reply)
        line.used = self._clock()
        if not line.asked:
            line.until = None
            line.failures = 0

    def _listen(self, line: Line, instance: Instance) -> None:
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if instance.has_unsent else 0)
        if self.selector.get_key(instance.socket).events != wanted:
            self.selector.modify(instance.socket, wanted, (line, instance, True))

    def _read_prints(self, lines: Sequence[Line], now: float) -> None:
        if now < self._next_print:
            return
        self._next_print = now + PRINTING_SECONDS
        for line in lines:
            if line.instance is not None:
                line.instance.read_output()
                line.printed = line.instance.printed

    def _times(self, line: Line, now: float) -> list[float]:
        times = []
        if line.until is not None:
            times.append(line.until)
        elif line.is_serving and line.waiting and self._may_ask():
            times.append(line.gathers_until())
        if line.waiting and not line.has_place:
            times.append(max(line.not_before, now + LOOK_SECONDS))
        return times


def _questions(line: Line) -> list[tuple[str, Question]]:
    return [(name, each.question) for name, each in line.asked.items()]
