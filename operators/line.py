"""What is known of one program on this node: who waits for it, its process, how that went."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from operators.errors import Misbehaved
from operators.instance import Instance
from operators.manifest import Described
from operators.room import QUESTION_BYTES
from operators.wire import Spelling
from servioticy.ports.programs import MAX_STATE_BYTES, Program, Question, Reply

MOST_ATTEMPTS = 2
"""A question that was asked alone, and so often, and ended its process, is to blame."""

MOST_STARTS = 3
"""A program that could not be begun so often in a row does not begin: its questions fail."""

MOST_FRAME_BYTES = 4 * 1024 * 1024
"""Of questions; a single one may be larger."""

MOST_ANSWERED_BYTES = 16 * 1024 * 1024
"""Of all frames that answer one."""

RESTART_SECONDS = 0.2
LONGEST_RESTART_SECONDS = 10.0
"""After the n-th failure in a row n times the first, and never more than the second."""


class Running(NamedTuple):
    """What a node knows of a program."""

    program: Program
    state: str
    """`waiting` for a place, `starting`, `serving`, `idle`, `resting` after a failure, `ended`"""
    restarts: int
    problem: str
    """why its last process has ended that should not have"""
    printed: bytes
    """the end of that"""
    pid: int | None


@dataclass(slots=True)
class Asked:
    """A question that is open."""

    question: Question
    came: float
    size: int
    attempts: int = 0
    told: Callable[[str], None] | None = None
    """Of a warm-up, which no stream asks: who is told "" or what is wrong."""
    payer: str = ""
    """of that: the stream for which it is"""

    @property
    def whose(self) -> str:
        """The stream that pays."""
        return self.payer or self.question.composite


@dataclass(slots=True)
class Line:
    """A program's questions in their order, and its process if it has one."""

    program: Program
    used: float
    """When it was last asked or has answered."""
    come: deque[Asked] = field(default_factory=deque)
    """What others have put here, under their lock."""
    waiting: deque[Asked] = field(default_factory=deque)
    asked: dict[str, Asked] = field(default_factory=dict)
    """What its process is to answer now, by the ids that cross."""
    described: Described | None = None
    spelling: Spelling | None = None
    instance: Instance | None = None
    is_starting: bool = False
    is_leaving: bool = False
    is_forgotten: bool = False
    is_warm: bool = False
    """Whether its process has answered something, or its warm-up."""
    since: float = 0.0
    """When its process became ready."""
    until: float | None = None
    """When its process has to be ready, or to have answered."""
    not_before: float = 0.0
    """When the next may be begun."""
    failures: int = 0
    starts_failed: int = 0
    restarts: int = 0
    problem: str = ""
    printed: bytes = b""
    unpaid: float = 0.0
    payer: str = ""
    """The stream for which it was asked last."""
    answered_bytes: int = 0
    next_id: int = 0

    @property
    def has_place(self) -> bool:
        """Whether it has a process, or one is being begun."""
        return self.is_starting or self.instance is not None

    @property
    def is_serving(self) -> bool:
        """Whether its process is ready."""
        return self.instance is not None and self.instance.is_ready

    @property
    def is_idle(self) -> bool:
        """Whether its process is ready and nothing is asked of it."""
        return self.is_serving and not self.waiting and not self.asked

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to do for it."""
        return self.has_place or bool(self.waiting or self.asked)

    @property
    def serving_since(self) -> float:
        """Since when it could answer: who has not begun yet is not sent away."""
        return self.since if self.is_serving else math.inf

    def take(self, now: float) -> list[Asked]:
        """Take the questions of the next frame; none, where more of them are waited for."""
        if not self.waiting or self.described is None:
            return []
        if self.waiting[0].attempts or self.waiting[0].told:
            return [self.waiting.popleft()]
        manifest = self.described.manifest
        taken: list[Asked] = []
        events = content = 0
        for each in self.waiting:
            if each.question.after is not None:
                continue  # what it comes after is not answered
            events += len(each.question.events)
            content += each.size
            too_many = events > manifest.batch or content > MOST_FRAME_BYTES
            if taken and (each.attempts or each.told or too_many):
                break
            taken.append(each)
        is_full = len(taken) < len(self.waiting) or events >= manifest.batch
        if not is_full and now < self.gathers_until():
            return []
        for each in taken:
            self.waiting.remove(each)
        return taken

    def gathers_until(self) -> float:
        """When what waits is sent though it is few."""
        wait = 0.0 if self.described is None else self.described.manifest.wait_seconds
        return self.waiting[0].came + wait

    def warm_ups(self) -> list[Asked]:
        """Take those out that wait to be asked whether it can take over."""
        found = [each for each in self.waiting if each.told]
        for each in found:
            self.waiting.remove(each)
        return found

    def put_back(self, blame: bool = True) -> list[Asked]:
        """Let what was asked wait again, each to be asked alone; return who is to blame.

        Not `blame`: it waits as if it had not been asked.
        """
        alone = len(self.asked) == 1
        blamed = []
        for each in reversed(list(self.asked.values())):
            each.attempts += blame
            if blame and alone and each.attempts >= MOST_ATTEMPTS:
                blamed.append(each)
            else:
                self.waiting.appendleft(each)
        self.asked.clear()
        return blamed

    def note_failure(self, now: float) -> None:
        """Wait longer before each further start, as long as nothing is answered between."""
        self.failures += 1
        self.restarts += 1
        self.not_before = now + self.rest_seconds()

    def rest_seconds(self) -> float:
        """How long it rests after its last failure."""
        if self.starts_failed >= MOST_STARTS:
            return LONGEST_RESTART_SECONDS
        return min(self.failures * RESTART_SECONDS, LONGEST_RESTART_SECONDS)

    def count_answered(self, size: int) -> None:
        """Count what a frame is answered with. Raises Misbehaved where that is too much."""
        self.answered_bytes += size
        if self.answered_bytes > MOST_ANSWERED_BYTES:
            raise Misbehaved(f"it answered one frame with more than {MOST_ANSWERED_BYTES} bytes")

    def pay(self) -> float:
        """Return the processor time that no reply has told yet, which is told now."""
        unpaid, self.unpaid = self.unpaid, 0.0
        return unpaid

    def last_words(self) -> str:
        """The last line that its process printed, to be put behind a reason."""
        lines = self.printed.decode(errors="replace").split("\n")
        words = next((each.strip() for each in reversed(lines) if each.strip()), "")
        return f": {words[:200]}" if words else ""

    def running(self, now: float) -> Running:
        """Return what is known of it."""
        instance = self.instance
        if instance is None and not self.is_starting:
            rests = "resting" if now < self.not_before else "waiting"
            state = rests if self.waiting or self.come else "ended"
        elif not self.is_serving:
            state = "starting"
        else:
            state = "serving" if self.asked or self.waiting else "idle"
        pid = None if instance is None else instance.pid
        return Running(self.program, state, self.restarts, self.problem, self.printed, pid)


def size_of(question: Question) -> int:
    """How much room a question takes."""
    state = MAX_STATE_BYTES if question.after is not None else len(question.state or b"")
    content = sum(map(len, question.events)) + state
    return QUESTION_BYTES + content + len(question.composite)


def bytes_of(reply: Reply) -> int:
    """How many bytes a reply has."""
    outputs = sum(len(each.channels) for each in reply.outputs)
    return outputs + len(reply.state or b"") + len(reply.error)
