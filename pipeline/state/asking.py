"""Asks programs what waits for them, once that is stored; their answers go into the log.

What is under way is known here alone, and may be forgotten at any time: whoever begins the
partition next asks again. An answer says to what it is one, so at its place in the log it is taken
in once, or not at all (decision 0070). Of a stream several questions may be open, each asked
behind the one before (`chains.py`).
"""

from __future__ import annotations

import math
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from pipeline.limits import Limits
from pipeline.state.answering import Asked, answer_of, refusal
from pipeline.state.chains import Open, Place, place_behind, still_open
from pipeline.state.components import StillLoading
from pipeline.state.manifests import MAX_REMEMBERED, UNKNOWN_SECONDS, AskedPrograms, Manifests
from pipeline.state.partition import Partition
from pipeline.state.waits import Waits, waits_of
from servioticy.domain.cache import Cache
from servioticy.domain.evaluators.programs import Head, queue_of
from servioticy.domain.model import ClockRef, ServiceObject, StreamRef
from servioticy.domain.program_code import ProgramCode
from servioticy.domain.records import AnswerRecord
from servioticy.domain.scripts import program_name
from servioticy.ports.kept_entries import EntryToAsk
from servioticy.ports.programs import Manifest, Program, Programs, Question, Reply

EACH = 100
"""Streams of a tenant that are looked at, those first that have waited longest."""

MAX_OPEN = 64
"""Questions of a partition that are open at once: an answer may be some megabytes. A tenant may
have as many as are left to all others (`operators/room.py` says why)."""

MAX_EVENTS = 1000
"""In one question."""

AGAIN_SECONDS = 0.02
"""Between two looks, where there was no room, or a component is being loaded."""

LOST_SECONDS = 60.0
"""An answer that has not come out of the log after so long is lost: it is asked again."""


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


class _Question(NamedTuple):
    """What is to be asked."""

    place: Place
    waits: Waits
    keeps_state: bool
    """Whether the program goes on with what another version has left."""


_Streams: TypeAlias = dict[StreamRef, list[Open]]


class Asking:
    """Asks for the streams of one partition."""

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
        self._programs, self._note = asked.programs, asked.note
        self._clock, self._now, self._limits = clock, now, limits
        self._open: _Streams = {}
        self._ids: dict[bytes, StreamRef] = {}
        self._candidates: Sequence[_Candidate] = ()
        """As of the last look at what is stored."""
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
        self._manifests = Manifests(asked, clock)

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
        is_stale = not self._left_to_look()
        if is_stale:
            self._partition.is_to_ask = False
            self._look_at = math.inf
            to_ask = self._partition.store.to_ask(self._partition.number, EACH)
            self._candidates = list(self._find(to_ask))
        if is_stale or replies:
            found += self._look(self._programs)
        return [each for each in found if each is not None]

    def _left_to_look(self) -> float:
        return 0.0 if self._partition.is_to_ask else max(0.0, self._look_at - self._clock())

    def _look_in(self, seconds: float) -> None:
        self._look_at = min(self._look_at, self._clock() + seconds)

    def _look(self, programs: Programs) -> list[AnswerRecord]:
        """Ask for all for whom there is room, those first of whom least is asked.

        Return what answers those whose program is not there, or may not be used: an error.
        """
        self._forget_all_but({each.stream: each for each in self._candidates})
        manifests = self._manifests.of({each.program for each in self._candidates})
        open_of = Counter(
            each.asked.program.tenant for chain in self._open.values() for each in chain
        )
        refused: list[AnswerRecord] = []
        turn = deque(
            sorted(self._candidates, key=lambda each: len(self._open.get(each.stream, ())))
        )
        full: set[int] = set()
        while turn and open_of.total() < MAX_OPEN:  # else an answer makes room
            each = turn.popleft()
            tenant = each.program.tenant
            if each.program not in manifests:
                self._look_in(UNKNOWN_SECONDS)
            elif tenant in full or open_of[tenant] >= MAX_OPEN - open_of.total():
                continue
            elif (manifest := manifests[each.program]) is None:
                if each.stream not in self._open:
                    refused += self._refused(each)
            elif (question := self._question(each, manifest)) is not None:
                if self._ask(programs, each, question):
                    open_of[tenant] += 1
                    turn.append(each)
                else:
                    full.add(tenant)
                    self._look_in(AGAIN_SECONDS)
        return refused

    def _find(self, to_ask: Iterable[EntryToAsk]) -> Iterator[_Candidate]:
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
        for stream, chain in self._open.items():
            candidate = candidates.get(stream)
            if candidate is None:
                continue
            left = still_open(chain, candidate.queue, candidate.program)
            if not left:
                continue
            if left[0].answered_at is not None:
                seconds = left[0].answered_at + LOST_SECONDS - self._clock()
                if seconds <= 0:
                    continue
                self._look_in(seconds)
            kept[stream] = left
        self._open = kept
        self._ids = {
            each.asked.id: stream
            for stream, chain in kept.items()
            for each in chain
            if each.answered_at is None
        }
        self._since = {each: at for each, at in self._since.items() if each in candidates}

    def _question(self, each: _Candidate, manifest: Manifest) -> _Question | None:
        """What is to be asked of a stream now; None: nothing.

        Behind what the program has still to answer only what fills a question is asked: else it
        is waited for more, which it may answer together (algorithm 1 of the paper).
        """
        place = place_behind(self._open.get(each.stream, ()), each.queue)
        if place is None:
            return None
        waiting = each.queue.next - place.first
        most = self._most.get(each.stream) or MAX_EVENTS
        is_in_doubt = most < MAX_EVENTS
        most = min(manifest.batch, most, MAX_EVENTS)
        most = min(most, max(1, self._limits.computations // (1 + each.reach)))
        if place.is_busy and (waiting < most or is_in_doubt):
            return None
        if waiting <= 0 or not self._is_enough(each.stream, place.first, waiting, manifest):
            return None
        waits = self._waits(each, place.first, min(most, waiting))
        return _Question(place, waits, manifest.keeps_state) if waits.events else None

    def _is_enough(self, stream: StreamRef, first: int, waiting: int, manifest: Manifest) -> bool:
        """Whether a question need not wait until there are more events."""
        since = self._since.get(stream)
        if since is None or since[0] != first:
            since = self._since[stream] = first, self._clock()
        left = since[1] + manifest.wait_seconds - self._clock()
        if left <= 0 or waiting >= manifest.batch:
            return True
        self._look_in(left)
        return False

    def _ask(self, programs: Programs, each: _Candidate, question: _Question) -> bool:
        """Ask about the oldest that wait and are not asked about; False: there is no room."""
        queue, (_tenant, name, version, *_) = each.queue, each.program
        place, waits, keeps_state = question
        kept = state = waits.state
        after = None
        if place.behind is not None:
            kept = state = place.behind.left
            after = place.after if place.is_busy else None
        elif not keeps_state and (queue.program, queue.version) != (name, version):
            state = None
        asked = Asked(
            self._new_id(),
            each.program,
            each.stream,
            queue.begun,
            place.first,
            place.states,
            state,
            waits.timestamps,
            leaves_state=kept is not None and state is None,
            after=place.after,
            traces=waits.traces,
        )
        told = Question(asked.id, each.program, str(each.stream), state, waits.events, after)
        if not programs.ask(told):
            return False
        self._note_asked(each, asked, sum(map(len, waits.events)))
        return True

    def _refused(self, each: _Candidate) -> list[AnswerRecord]:
        """Answer the oldest that wait for a program that is not there with an error."""
        queue, program = each.queue, each.program
        waits = self._waits(each, queue.first, min(MAX_EVENTS, queue.waiting))
        if not waits.events:
            return []
        asked = Asked(
            self._new_id(),
            program,
            each.stream,
            queue.begun,
            queue.first,
            queue.states,
            waits.state,
            waits.timestamps,
            traces=waits.traces,
        )
        opened = self._note_asked(each, asked, 0)
        opened.answered_at, opened.left = self._clock(), waits.state
        self._look_in(LOST_SECONDS)
        named = f"version {program.version} of the program {program.name}"
        return [refusal(asked, f"there is no {named} any more that may be used", self._at())]

    def _waits(self, each: _Candidate, first: int, most: int) -> Waits:
        numbers = range(first, first + most)
        place = each.entry.stream_id, each.queue.begun
        found = waits_of(self._partition.store, *place, numbers, each.program.version)
        if not found.events:  # it is stored otherwise by now
            self._look_in(AGAIN_SECONDS)
        return found

    def _new_id(self) -> bytes:
        self._asked += 1
        return b"%b %d" % (self._name, self._asked)

    def _note_asked(self, each: _Candidate, asked: Asked, size: int) -> Open:
        opened = Open(asked, program_name(each.stream, each.version), size)
        self._open.setdefault(each.stream, []).append(opened)
        self._ids[asked.id] = each.stream
        return opened

    def _at(self) -> int:
        return int(self._now() * 1000)

    def _answered(self, reply: Reply) -> AnswerRecord | None:
        """The record of an answer; None where nobody waits for it, or it is asked in parts."""
        stream = self._ids.pop(reply.id, None)
        if stream is None:
            return None
        chain = self._open[stream]
        at = [each.asked.id for each in chain].index(reply.id)
        asked = chain[at].asked
        self._note(chain[at].name, reply.processor_seconds)
        record = answer_of(asked, reply, self._at())
        if record is None:
            self._most.put(stream, len(asked.timestamps) // 2, 1)
            self._drop(stream, at)
            return None
        most = self._most.get(stream)
        if most is not None and not reply.error:
            self._most.put(stream, min(2 * most, MAX_EVENTS), 1)
        chain[at].answered_at = self._clock()
        chain[at].left = asked.state if record.keeps else record.state
        self._look_in(LOST_SECONDS)
        if chain[at].left != reply.state:
            self._drop(stream, at + 1)  # they go on with what is not kept
        elif at + 1 < len(chain):
            behind = chain[at + 1]
            behind.asked = behind.asked._replace(state=reply.state)
        return record

    def _drop(self, stream: StreamRef, at: int) -> None:
        """Forget the questions of a stream from this one on: they are asked again."""
        chain = self._open[stream]
        for each in chain[at:]:
            self._ids.pop(each.asked.id, None)
        del chain[at:]
        if not chain:
            del self._open[stream]
