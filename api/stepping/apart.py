"""Work in a process of lower priority: its computing holds up no update of this one.

The process is asked for one step after the other, of whatever has its turn; it keeps what
is begun, until it is told that nobody wants it any more. It is ended where a step takes too long
or too much memory: then what is begun breaks off, and other work begins in another one.
"""

from __future__ import annotations

import itertools
import pickle
import threading
from collections import Counter, deque
from collections.abc import Iterator
from typing import Generic

from api.stepping.step import A, Step
from servioticy.apart.asking import OtherProcess, TookTooLong
from servioticy.errors import Unavailable
from servioticy.refusals import TooMany


class StepsApart(Generic[A]):
    """Asked by one thread at a time for a step; work may be begun and ended by any."""

    def __init__(
        self, process: OtherProcess, what: str, most_begun: int, most_of_one: int
    ) -> None:
        """`what` is the plural of what is asked for.

        The numbers are of what is not at its end: of all, and of one tenant.
        """
        self._process = process
        self._what = what
        self._most_begun, self._most_of_one = most_begun, most_of_one
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._begun: Counter[int] = Counter()
        """how many of each tenant are not at their end"""
        self._ended: deque[int] = deque()
        """numbers that the process is still to be told of"""

    def steps(self, asked: A) -> Iterator[Step]:
        """Yield what the process finds. Raises Unavailable, and TooMany of a tenant's own.

        A step that takes too long is one, too: it found nothing, and is paid for before that is
        raised.
        """
        number, tenant = next(self._numbers), asked.caller
        self._begin(tenant)
        try:
            step = self._asked(number, asked)
            while step is not None:
                yield step
                step = self._asked(number, None)
        except TookTooLong as late:
            yield Step(b"", late.seconds)
            raise
        finally:
            self._end(tenant, number)

    def close(self) -> None:
        """End the process."""
        self._process.stop()

    def _begin(self, tenant: int) -> None:
        with self._lock:
            if self._begun[tenant] >= self._most_of_one:
                most = f"{self._most_of_one} {self._what}"
                raise TooMany(f"{most} are under way already: read their answers")
            if self._begun.total() >= self._most_begun:
                raise Unavailable(f"too many {self._what} are under way; try again later")
            self._begun[tenant] += 1

    def _end(self, tenant: int, number: int) -> None:
        with self._lock:
            self._ended.append(number)
            self._begun[tenant] -= 1
            if not self._begun[tenant]:
                del self._begun[tenant]

    def _asked(self, number: int, asked: A | None) -> Step | None:
        with self._lock:
            ended = list(self._ended)
            self._ended.clear()
        request = pickle.dumps((ended, number, asked), pickle.HIGHEST_PROTOCOL)
        found = pickle.loads(self._process.ask(request))  # noqa: S301  our own code made it
        if isinstance(found, Step):
            return found
        if found is not None:
            raise found
        return None
