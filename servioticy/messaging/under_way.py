"""What a producer has been given, until the broker has said of all of it what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message

from servioticy.errors import Rejected
from servioticy.messaging.failures import meaning
from servioticy.messaging.sending import too_large
from servioticy.ports.borders import Crossing


class UnderWay:
    """How many messages of one kind and batch the broker still owes a word on."""

    __slots__ = ("ends", "next_offset", "offsets", "refusal", "rejected", "unsent", "waiting")

    def __init__(
        self,
        next_offset: int,
        waiting: int = 0,
        *,
        ends: bool = True,
        unsent: Sequence[Crossing] = (),
    ) -> None:
        """`ends`: with these all is sent that was made from the log before `next_offset`."""
        self.next_offset = next_offset
        self.waiting = waiting
        self.ends = ends
        self.unsent = unsent
        """What is sent once all before it has arrived."""
        self.offsets: dict[bytes, int] = {}
        """Of what crosses borders, by its bytes: the record in the log that it was made from."""
        self.refusal: str | None = None
        """Why a message has to be sent again."""
        self.rejected: list[tuple[bytes, Rejected]] = []
        """Those that can never be sent, and why."""

    def pop_unsent(self) -> Sequence[Crossing]:
        """Return what is to be sent now, and note it as sent."""
        found, self.unsent = self.unsent, ()
        self.offsets = {each.record: each.offset for each in found}
        return found

    def delivered(self, error: object, message: Message) -> None:
        """Note what the broker said of a message."""
        if error is None:
            self.waiting -= 1
        else:
            self.ended(message.value() or b"", error)

    def ended(self, value: bytes, error: object) -> None:
        """Note why a message was not delivered."""
        self.waiting -= 1
        failure = meaning(error, "what is sent")
        if isinstance(failure, Rejected):
            self.rejected.append((value, failure))
        else:
            self.refusal = str(failure)

    def rejects(self, value: bytes, size: int | None = None) -> bool:
        """Note that a message is larger than any that is sent; False, as it is not to be."""
        self.waiting -= 1
        self.rejected.append((value, too_large(size or len(value), "what is sent")))
        return False

    def delivered_aside(self, error: object, _message: Message | None) -> None:
        """Note what the broker said of a message that is of no batch."""
        if error is not None:
            self.refusal = str(meaning(error, "a record"))
