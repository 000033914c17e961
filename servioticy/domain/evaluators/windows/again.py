"""Updates that come again: their stream had one of the same timestamp before.

Such a one takes the place of the former, so a device that repeats itself counts once. What was
counted cannot be taken out of an aggregate: the pane is made again of what history has. That is
asked for only where the timestamp may be in the pane at all, which what comes in order never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from servioticy.domain.evaluators.operators import Step
from servioticy.domain.evaluators.past import PastUpdate
from servioticy.domain.evaluators.windows.contents import Contents
from servioticy.domain.evaluators.windows.head import Pane
from servioticy.domain.evaluators.windows.inputs import Taken, channels_of
from servioticy.domain.windows.model import Window

MOST = 1000
"""Updates of one input in a pane that is made again."""

MAX_STREAMS = 100
"""Of one input whose panes are made again."""


class Repeated(Exception):
    """It changes nothing: why."""


class Again:
    """An update that may be one, of a stream whose newest timestamp was `before`."""

    def __init__(
        self,
        step: Step,
        window: Window,
        streams: Sequence[str],
        taken: Taken,
        before: int | None,
        contents: Contents,
    ) -> None:
        """`streams` are those of its input."""
        self._contents = contents
        self._past = step.past
        self._stream = step.source
        self._streams = streams
        self._document = step.trigger.document
        self._taken = taken
        self.is_newest = before is None or taken.timestamp > before
        is_of_event_time = window.time == "event"
        self.repeats_newest = is_of_event_time and taken.timestamp == before
        """Whether the newest update of its stream has that timestamp."""
        self._may_be = is_of_event_time and not self.is_newest
        self._is_replaced = window.fold is None and len(streams) <= MAX_STREAMS
        self._discards = window.revisions == "discard"

    def instead(
        self, pane: Pane | None, begin: int, until: int, *, is_alone: bool = True
    ) -> list[Taken] | None:
        """Return what a pane has of this input, from one timestamp until another, by now.

        None where the update is not there yet. `is_alone`: no other pane has a part of that span.
        Raises Repeated where it is there and stays as it was, and Lacking.
        """
        taken, at = self._taken, self._taken.timestamp
        former = None
        if pane is not None and self._may_be and pane.oldest <= at <= pane.newest:
            self.refuse_seen([pane])
            former = self._former()
        if former is None:
            if self.repeats_newest:
                raise Repeated(f"it repeats the newest update of its stream, {at}")
            return None
        if former == self._document:
            raise Repeated(f"it repeats what its stream has of {at}")
        if pane is not None and self._discards and pane.told:
            raise Repeated(
                f"what its stream had of {at} has been told, and what is told is kept no more"
            )
        if not self._is_replaced or not is_alone:
            raise Repeated(f"what its stream had of {at} has been counted")
        updates = self._updates(begin, until)
        if not updates:
            raise Repeated(
                f"what its stream had of {at} has been counted, and more than {MOST} updates, or "
                "others' streams, would have to be counted anew"
            )
        if pane is not None and len(updates) < self._contents.count(pane.begin, taken.argument):
            raise Repeated(
                f"what its stream had of {at} has been counted, and history does not have all any "
                "more that has been"
            )
        first = taken.order - len(updates)
        return [
            Taken(
                taken.argument,
                each.timestamp,
                each.document,
                channels_of(each.document),
                first + number,
            )
            for number, each in enumerate(updates, 1)
        ]

    def refuse_seen(self, panes: Iterable[Pane]) -> None:
        """Raise Repeated where one of these may have this update of another tenant's stream.

        Its history is not here, so nothing can be counted anew. Raises Lacking.
        """
        if not (self._may_be and self._taken.outside):
            return
        if any(self._contents.may_have(each.begin, self._taken) for each in panes):
            raise Repeated(
                f"what its stream had of {self._taken.timestamp} has been counted; the history of "
                "other tenants' streams, by which it would be counted anew, is not known here"
            )

    def _former(self) -> bytes | None:
        """What its stream had of this timestamp."""
        past = self._past
        return None if past is None else past.at(self._stream, self._taken.timestamp)

    def _updates(self, begin: int, until: int) -> list[PastUpdate] | None:
        past = self._past
        return None if past is None else past.between(self._streams, begin, until, MOST)
