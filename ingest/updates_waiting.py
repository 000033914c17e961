"""Whether a tenant's updates pile up faster than its share of the pipeline's time takes them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from ingest.quotas import SendersQuotas
from servioticy.domain.quotas import UPDATES_WAITING, Exceeded
from servioticy.ports.addresses import Address
from servioticy.ports.history import History

SECONDS = 1.0
"""So old may be what is known: a question an update would cost too much."""

MAX_KNOWN = 10_000


class UpdatesWaiting:
    """The updates of each tenant that the pipeline has put off, counted now and then.

    What waits already is bounded by refusing more.
    """

    def __init__(
        self, history: History, quotas: SendersQuotas, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._history = history
        self._quotas = quotas
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, int], tuple[float, bool]] = OrderedDict()

    def beyond(self, address: Address) -> Exceeded | None:
        """Return the quota that is used up where no more updates of this tenant are taken now.

        Raises Unavailable.
        """
        quota = self._quotas.most(address.tenant, UPDATES_WAITING)
        is_full = self._is_full((address.partition, address.tenant), quota.most)
        return Exceeded(quota, round(SECONDS)) if is_full else None

    def _is_full(self, key: tuple[int, int], most: int) -> bool:
        now = self._clock()
        with self._lock:
            at, full = self._known.get(key, (now - 2 * SECONDS, False))
            if now - at <= SECONDS:
                return full
            self._known[key] = (now, full)  # others go by what is known while we ask
            self._known.move_to_end(key)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        full = self._history.put_off(*key, most) >= most
        with self._lock:
            self._known[key] = (now, full)
        return full
