"""Asks programs what waits for them, once that is stored; their answers go into the log.

What is under way is known here alone, and may be forgotten at any time: whoever begins the
partition next asks again. An answer says to what it is one, so at its place in the log it is taken
in once, or not at all (decision 0070).
"""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pipeline.limits import Limits
from pipeline.state.answering import Asked, answer_of, refusal
from pipeline.state.components import StillLoading
from pipeline.state.partition import Partition
from pipeline.state.waits import waits_of
from servioticy.domain.cache import Cache
from servioticy.domain.evaluators.programs import Head, queue_of
from servioticy.domain.model import ClockRef, ServiceObject, StreamRef
from servioticy.domain.program_code import ProgramCode
from servioticy.domain.records import AnswerRecord
from servioticy.domain.scripts import program_name
from servioticy.errors import Unavailable
from servioticy.ports.kept_entries import EntryToAsk
from servioticy.ports.programs import (
    KnownPrograms,
    Manifest,
    Program,
    Programs,
    Question,
    Reply,
)

log = logging.getLogger("servioticy.pipeline")

EACH = 100
"""Streams of a tenant that are looked at, those first that have waited longest."""

MAX_OPEN = 64
"""Questions of a partition that are open at once: an answer may be some megabytes. A tenant may
have as many as are left to all others (`operators/room.py` says why)."""

MAX_EVENTS = 1000
"""In one question."""

AGAIN_SECONDS = 0.02
"""Between two looks, where there was no room, or a component is being loaded."""

UNKNOWN_SECONDS = 2.0
"""The same where it could not be known who is there; and so old may be that one is not."""

LOST_SECONDS = 60.0
"""An answer that has not come out of the log after so long is lost: it is asked again."""

MANIFEST_SECONDS = 10.0
"""So old may be what is known of a program."""

MAX_REMEMBERED = 10_000
"""Programs, and streams, of which something is remembered."""

MAX_SECONDS = 3600.0
"""Of the processor, that one answer may have taken."""


@dataclass(slots=True)
class AskedPrograms:
    """Who is asked; without `programs` nobody is, and what is to be asked waits."""

    programs: Programs | None = None
    known: KnownPrograms | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """What composites' programs have taken of the processor, by the names of their code: of the
    newest of these. For other threads to copy."""

    def note(self, name: str, seconds: float) -> None:
        """Note that so much was taken; what cannot be is not."""
        if not 0 < seconds < math.inf:
            return
        self.seconds[name] = self.seconds.get(name, 0.0) + min(seconds, MAX_SECONDS)
        if len(self.seconds) > MAX_REMEMBERED:
            self.seconds.pop(next(iter(self.seconds)))


class _Candidate(NamedTuple):
    """A stream for which a program is to be asked."""

    entry: EntryToAsk
    queue: Head
    program: Program
    version: int
    """Of its document."""
    reach: int
    """So many composites follow from an output, itself too."""

    @property
    def stream(self) -> StreamRef:
        return StreamRef(self.entry.service_object, self.entry.stream)


@dataclass(slots=True)
class _Open:
    """A question, until its answer has come out of the log."""

    asked: Asked
    name: str
    """Of the composite's code, for accounts."""
    answered_at: float | None = None

    def is_about(self, each: _Candidate) -> bool:
        """Whether it asks what is to be asked now, or its answer is being taken in."""
        queue, asked = each.queue, self.asked
        same = (queue.begun, queue.states) == (asked.begun, asked.states)
        begins = 0 <= queue.first - asked.first < len(asked.timestamps)
        return same and begins and each.program == asked.program


_Streams: TypeAlias = dict[StreamRef, _Open]


class Asking:
    """Asks for the streams of one partition: each has one question open at most."""

    def __init__(
        self,
        partition: Partition,
        asked: AskedPrograms,
        clock: Callable[[], float],
        now: Callable[[], float],
        limits: Limits,
    ) -> None:
        """`now`: the seconds since 1970 by which answers come."""
        self._partition = partition
        self._programs, self._known, self._note = asked.programs, asked.known, asked.note
        self._clock, self._now, self._limits = clock, now, limits
        self._open: _Streams = {}
        self._ids: dict[bytes, StreamRef] = {}
        self._replies: Sequence[Reply] = ()
        """Those that have come and have not been looked at."""
        self._name = os.urandom(8).hex().encode()
        """No answer to who had the partition before is one to a question of ours."""
        self._asked = 0
        self._look_at = -math.inf
        self._most: Cache[StreamRef, int] = Cache(MAX_REMEMBERED)
        """Events of a question, where more were too much for an answer."""
        self._since: dict[StreamRef, tuple[int, float]] = {}
        """Since when the first of those that wait has been seen to."""
        self._manifests: dict[Program, tuple[float, Manifest | None]] = {}

    def left(self) -> float:
        """Seconds until there is something to do; an answer wakes who waits for rows."""
        if self._programs is None:
            return math.inf
        if not self._replies:
            self._replies = self._programs.replies(0.0)
        return 0.0 if self._replies else self._left_to_look()

    def go_on(self) -> Sequence[AnswerRecord]:
        """Ask what can be asked; what the log is to be told of answers. Raises Unavailable."""
        if self._programs is None:
            return ()
        self.left()
        replies, self._replies = self._replies, ()
        found = [self._answered(each) for each in replies]
        if not self._left_to_look():
            self._partition.is_to_ask = False
            self._look_at = math.inf
            found += self._look(self._programs)
        return [each for each in found if each is not None]

    def _left_to_look(self) -> float:
        return 0.0 if self._partition.is_to_ask else max(0.0, self._look_at - self._clock())

    def _look_in(self, seconds: float) -> None:
        self._look_at = min(self._look_at, self._clock() + seconds)

    def _look(self, programs: Programs) -> list[AnswerRecord]:
        """Ask for all that have no question open and for whom there is room.

        Return what answers those whose program is not there, or may not be used: an error.
        """
        to_ask = self._partition.store.to_ask(self._partition.number, EACH)
        candidates = list(self._candidates(to_ask))
        self._forget_all_but({each.stream: each for each in candidates})
        waiting = [each for each in candidates if each.stream not in self._open]
        manifests = self._manifests_of({each.program for each in waiting})
        open_of = Counter(each.asked.program.tenant for each in self._open.values())
        full: set[int] = set()
        refused: list[AnswerRecord] = []
        for each in waiting:
            tenant = each.program.tenant
            if each.program not in manifests:
                self._look_in(UNKNOWN_SECONDS)
            elif len(self._open) >= MAX_OPEN:
                break  # an answer makes room
            elif (manifest := manifests[each.program]) is None:
                refused += self._refused(each)
            elif open_of[tenant] < MAX_OPEN - len(self._open) and tenant not in full:
                if not self._is_enough(each, manifest):
                    continue
                if self._ask(programs, each, manifest):
                    open_of[tenant] += 1
                else:
                    full.add(tenant)
                    self._look_in(AGAIN_SECONDS)
        return refused

    def _candidates(self, to_ask: Iterable[EntryToAsk]) -> Iterator[_Candidate]:
        """Those of which a program is to be asked that computes them here."""
        for each in to_ask:
            owner = self._partition.service_object(each.service_object)
            if isinstance(owner, StillLoading):
                self._look_in(AGAIN_SECONDS)
            if not isinstance(owner, ServiceObject):
                continue
            stream = owner.definition.stream(each.stream)
            composite = None if stream is None else stream.composite
            code = None if composite is None else composite.operator
            if isinstance(code, ProgramCode):
                whose = owner.operator_owners.get(code.owner)
                program = Program(each.tenant, code.name, code.version, whose)
                reach = len(self._partition.graph.reachable([ClockRef(*each[1:3])]))
                queue = queue_of(each.value)
                yield _Candidate(each, queue, program, owner.version, reach)

    def _forget_all_but(self, candidates: dict[StreamRef, _Candidate]) -> None:
        """Keep the questions that still are to be asked, and whose answer is not lost."""
        kept: _Streams = {}
        for stream, each in self._open.items():
            candidate = candidates.get(stream)
            if candidate is None or not each.is_about(candidate):
                continue
            if each.answered_at is not None:
                left = each.answered_at + LOST_SECONDS - self._clock()
                if left <= 0:
                    continue
                self._look_in(left)
            kept[stream] = each
        self._open = kept
        self._ids = {each.asked.id: stream for stream, each in kept.items()}
        self._since = {each: at for each, at in self._since.items() if each in candidates}

    def _manifests_of(self, programs: set[Program]) -> dict[Program, Manifest | None]:
        """What they say of themselves; None of those that may not be used, and nothing of those of
        which that could not be known."""
        now = self._clock()
        self._manifests = {
            program: found
            for program, found in self._manifests.items()
            if now - found[0] < (UNKNOWN_SECONDS if found[1] is None else MANIFEST_SECONDS)
        }
        unknown = list(programs - self._manifests.keys())
        if unknown and self._known is not None:
            try:
                found = self._known.manifests(unknown)
            except Unavailable as error:
                log.warning("programs_unknown", extra={"why": str(error)})
                unknown = []
            if len(self._manifests) > MAX_REMEMBERED:
                self._manifests.clear()
            self._manifests.update({each: (now, found.get(each)) for each in unknown})
        return {each: self._manifests[each][1] for each in programs & self._manifests.keys()}

    def _is_enough(self, each: _Candidate, manifest: Manifest) -> bool:
        """Whether a question need not wait until there are more events."""
        since = self._since.get(each.stream)
        if since is None or since[0] != each.queue.first:
            since = self._since[each.stream] = each.queue.first, self._clock()
        left = since[1] + manifest.wait_seconds - self._clock()
        if left <= 0 or each.queue.waiting >= manifest.batch:
            return True
        self._look_in(left)
        return False

    def _ask(self, programs: Programs, each: _Candidate, manifest: Manifest) -> bool:
        """Ask about the oldest that wait; False: there is no room for it."""
        queue, (_tenant, name, version, *_) = each.queue, each.program
        most = min(manifest.batch, self._most.get(each.stream) or MAX_EVENTS, MAX_EVENTS)
        most = min(most, max(1, self._limits.computations // (1 + each.reach)), queue.waiting)
        waits = waits_of(self._partition.store, each.entry.stream_id, queue, version, most)
        if not waits.events:  # it is stored otherwise by now
            self._look_in(AGAIN_SECONDS)
            return True
        began_anew = not manifest.keeps_state and (queue.program, queue.version) != (name, version)
        state = None if began_anew else waits.state
        self._asked += 1
        id_ = b"%b %d" % (self._name, self._asked)
        question = Question(id_, each.program, str(each.stream), state, waits.events)
        if not programs.ask(question):
            return False
        asked = Asked(
            id_, each.program, each.stream, queue.begun, queue.first, queue.states, state,
            waits.timestamps, waits.state is not None and state is None,
        )  # fmt: skip
        self._open[each.stream] = _Open(asked, program_name(each.stream, each.version))
        self._ids[id_] = each.stream
        return True

    def _refused(self, each: _Candidate) -> list[AnswerRecord]:
        """Answer the oldest that wait for a program that is not there with an error."""
        queue, (_tenant, name, version, *_) = each.queue, each.program
        most = min(MAX_EVENTS, queue.waiting)
        waits = waits_of(self._partition.store, each.entry.stream_id, queue, version, most)
        if not waits.events:
            self._look_in(AGAIN_SECONDS)
            return []
        wrong = f"there is no version {version} of the program {name} any more that may be used"
        record = refusal(each.stream, each.program, queue, waits.timestamps, wrong, self._at())
        asked = Asked(
            b"", each.program, each.stream, queue.begun, queue.first, queue.states, None,
            waits.timestamps, False,
        )  # fmt: skip
        name = program_name(each.stream, each.version)
        self._open[each.stream] = _Open(asked, name, self._clock())
        self._look_in(LOST_SECONDS)
        return [record]

    def _at(self) -> int:
        return int(self._now() * 1000)

    def _answered(self, reply: Reply) -> AnswerRecord | None:
        """The record of an answer; None where nobody waits for it, or it is asked in parts."""
        stream = self._ids.pop(reply.id, None)
        if stream is None:
            return None
        open_ = self._open[stream]
        asked = open_.asked
        self._note(open_.name, reply.processor_seconds)
        record = answer_of(asked, reply, self._at())
        count = len(asked.timestamps)
        if record is None:
            self._most.put(stream, count // 2, 1)
            del self._open[stream]
            self._partition.is_to_ask = True
            return None
        most = self._most.get(stream)
        if most is not None and not reply.error:
            self._most.put(stream, min(2 * most, MAX_EVENTS), 1)
        open_.answered_at = self._clock()
        self._look_in(LOST_SECONDS)
        return record
