"""A client that watches one stream: its last value, then what is live."""

from __future__ import annotations

from broker.client import Subscription
from delivery.admission.requests import Admission
from delivery.endings import Ending
from delivery.fanout import LiveUpdate

MAX_HELD = 100


class Watch:
    """Keeps to the protocol `Subscriber`; what is live waits until the last value is known."""

    takes_later = False

    def __init__(self, subscription: Subscription, admission: Admission) -> None:
        self.admission = admission
        self._subscription = subscription
        self._held: list[bytes] | None = []

    @property
    def tenant(self) -> int:
        """Return whose client it is."""
        return self.admission.tenant

    def begin(self, last: bytes | None) -> bool:
        """Send the last value, unless a newer one has come, and from now on what comes.

        Tell whether the last value was sent.
        """
        held, self._held = self._held or [], None
        is_sent = last is not None and not held
        if last is not None and is_sent:
            self._send(last, old=True)
        for document in held:
            self._send(document, old=False)
        return is_sent

    def offer(self, live: LiveUpdate) -> None:
        """Send a live update. A stream of others is asked for again when it has changed."""
        if self.admission.foreign and live.version != self.admission.version:
            self.close(Ending.DOCUMENT_CHANGED)
        elif self._held is None:
            self._send(live.update.document, old=False)
        elif len(self._held) < MAX_HELD:
            self._held.append(live.update.document)
        else:
            self.close(Ending.HISTORY_TOO_SLOW)

    def close(self, ending: Ending) -> None:
        """End the client's connection; who comes again is asked anew."""
        self._subscription.client.close(ending.value)

    def _send(self, document: bytes, *, old: bool) -> None:
        levels = self._subscription.wanted.levels
        self._subscription.send(levels, document, _nothing, old=old)


def _nothing(_is_taken: bool) -> None:
    """Nobody asks what became of it: what is live is not kept for anybody."""
