"""How often somebody may be wrong about the same thing, such as the key of a device.

Only what is refused counts. Of what has been guessed at too often nothing is even looked at:
right or wrong, the answer is the same. Nobody else is concerned, and nothing that cannot be
guessed needs this, as a claim code cannot.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from servioticy.refusals import Conflict, TooMany

MOST = 20.0
"""At once."""
PER_SECOND = 0.5
"""So many more may be wrong each second."""
MAX_REMEMBERED = 10_000


class Attempts:
    """Counts what was refused, in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """The clock gives seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._of: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """of each thing what is left, and when it was so"""

    @contextmanager
    def counted(self, what: Hashable) -> Iterator[None]:
        """Count it where what is done inside is refused. Raises TooMany."""
        with self._lock:
            if self._left(what) < 1:
                raise TooMany("Too much has been refused: wait, and look what is wrong")
        try:
            yield
        except Conflict:
            self._note(what)
            raise

    def _note(self, what: Hashable) -> None:
        with self._lock:
            self._of[what] = self._left(what) - 1, self._clock()
            self._of.move_to_end(what)
            if len(self._of) > MAX_REMEMBERED:
                self._of.popitem(last=False)

    def _left(self, what: Hashable) -> float:
        left, at = self._of.get(what, (MOST, self._clock()))
        return min(MOST, left + PER_SECOND * (self._clock() - at))
