"""Programs of tenants' own that compute composites, in processes apart: what is asked of them.

Such a program, in any language, is pushed by a tenant; a *question* is a batch of events for one
composite, with what that composite keeps, and the *reply* what the program made of it. A program
is asked and answers later: nobody waits here (Luthra et al., Operator as a Service, 2020, listing
1: `requestOperator` and `sendEvent` are `ask`, a listener is who calls `replies`, and
`removeListener` is `forget`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

MAX_STATE_BYTES = 65_536
"""Of what a composite keeps, in one reply."""

MAX_EVENTS = 10_000
"""In one question."""

MAX_QUESTION_BYTES = 4 * 1024 * 1024
"""Of all events of a question; a single event may fill it."""

MAX_OUTPUTS = 10_000
"""In one reply."""

MAX_REPLY_BYTES = 4 * 1024 * 1024
"""Of the channels of all outputs of a reply."""


class Program(NamedTuple):
    """Which program computes, and for whom."""

    tenant: int
    """for whom it runs, and who pays: no process serves two"""
    name: str
    """as the document has it: of a program of the tenant's own its name, and of one that another
    tenant has granted `OWNER/NAME`"""
    version: int
    owner: int | None = None
    """whose it is, of one of another tenant's: what its document meant by OWNER when it was
    accepted, whoever has that name now. None: nobody's that may be asked"""
    lane: int = 0
    """of several processes of it that work beside each other and keep nothing, which"""


class Manifest(NamedTuple):
    """What a program says of itself, as far as those who ask it have to know."""

    language: str
    """for people: `python`, `node`, `go` or any other word"""
    keeps_state: bool
    """whether a composite goes on with what it kept under the version before, or with nothing"""
    batch: int
    """events in a question, at most: from 1 to MAX_EVENTS"""
    wait_seconds: float
    """how long a question may wait until it has so many events; 0: not at all"""
    answer_seconds: float
    """in which a question is answered, or is the program's fault"""
    memory_bytes: int
    processes: int
    """at most, its threads among them"""


class Question(NamedTuple):
    """A batch of events for one composite."""

    id: bytes
    """its reply has it, too; no two that are open have the same. At most 64 bytes"""
    program: Program
    composite: str
    """which it is, for people: `SERVICE_OBJECT/STREAM`"""
    state: bytes | None
    """what the composite keeps as of the last commit, at most MAX_STATE_BYTES; None: nothing"""
    events: Sequence[bytes]
    """each compact JSON: an object with `stream`, `timestamp`, `channels`,
    `version` and `correlation`, oldest first; at most MAX_EVENTS and MAX_QUESTION_BYTES"""
    after: bytes | None = None
    """the id of a question of the same composite and program that is not answered yet: the state
    of this one is what the reply to that one has. None: it is `state`"""


class ProgramOutput(NamedTuple):
    """An update that the program makes of an event."""

    event: int
    """which one, from 0: never a smaller one than that of the output before"""
    timestamp: int | None
    """of what unit the sender's are; None: the event's own"""
    channels: bytes
    """compact JSON: an object. Its names and values are for the asker to check"""
    stream: str = ""
    """of which stream of the same Service Object, by its name; "": of the composite. For the asker
    to check"""


class Reply(NamedTuple):
    """What came of a question: either all of its events were taken, or there is an error."""

    id: bytes
    outputs: Sequence[ProgramOutput]
    """at most MAX_OUTPUTS and MAX_REPLY_BYTES; none where there is an error"""
    state: bytes | None
    """what the composite keeps now: that of the question, if the program has not changed it or
    there is an error"""
    error: str
    """"" or what is wrong with the program, in at most 500 characters, for its tenant: it raised,
    has died again and again, did not answer in time, or answered what is no answer. It is final:
    what is nobody's fault is not told so, but asked again within"""
    processor_seconds: float
    """that its process has used since the reply before"""


class Programs(Protocol):
    """Runs programs. Every question that was taken is answered once, unless it is forgotten.

    Questions of one composite are answered in the order in which they were asked, those of several
    in any. All of it may be called from several threads.
    """

    def ask(self, question: Question) -> bool:
        """Take a question. False: there is no room now, or what it comes after has been answered
        already; ask later. Never blocks.

        Raises ValueError where it is larger than said above.
        """

    def replies(self, wait_seconds: float) -> Sequence[Reply]:
        """Return what has been answered since, in order; after so long nothing.

        Returns as soon as there is one.
        """

    def forget(self, program: Program) -> None:
        """End the program's processes. Its open questions are answered no more."""

    def close(self) -> None:
        """End all of them."""


class KnownPrograms(Protocol):
    """Knows which programs tenants have, and which they may use."""

    def manifests(self, programs: Sequence[Program]) -> Mapping[Program, Manifest]:
        """Return the manifest of each that its tenant may use now; the others are left out.

        Raises Unavailable.
        """
