"""In the other process: begins what is asked, and keeps it until it has come to its end."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import Generic

from api.stepping.step import A, Step, Steps
from servioticy.errors import Unavailable
from servioticy.refusals import Refused

STEP_SECONDS = 0.05
STEP_BYTES = 262_144
"""Of a step: others wait for it, and each takes a message here and back."""


class Answering(Generic[A]):
    """What is begun here."""

    def __init__(self, work: Steps[A], again: str) -> None:
        """`again` is what to do about work that is not begun here ("search again")."""
        self._work = work
        self._again = again
        self._begun: dict[int, Iterator[Step]] = {}
        """by number; as many as `StepsApart` lets begin"""
        self._failed: dict[int, Exception] = {}
        """why one of them has ended: told once it is told what it took until then"""

    def answer(self, request: bytes) -> bytes:
        """Return the next step of some work, None after the last, or what went wrong.

        A request names what nobody wants any more, the number of one, and what is asked where
        that begins.
        """
        ended, number, asked = pickle.loads(request)  # noqa: S301  the API made it
        for each in ended:
            self._begun.pop(each, None)
            self._failed.pop(each, None)
        if asked is not None:
            self._begun[number] = self._work.steps(asked)
        return pickle.dumps(self._step(number), pickle.HIGHEST_PROTOCOL)

    def _step(self, number: int) -> Step | Exception | None:
        steps = self._begun.get(number)
        if steps is None:
            lost = Unavailable(f"its process has ended meanwhile; {self._again}")
            return self._failed.pop(number, lost)
        found, error = _together(steps)
        if error is not None:
            self._failed[number] = error
        if error is not None or found is None:
            del self._begun[number]
        return found


def _together(steps: Iterator[Step]) -> tuple[Step | None, Exception | None]:
    """Return what the next steps find until there is enough of it, or time is over.

    And why they ended, where something went wrong: what was taken until then is told all the same,
    or who is refused each time would pay for nothing.
    """
    began, cpu = time.monotonic(), time.process_time()
    some: list[bytes] = []
    size, elsewhere = 0, 0.0
    failed: Exception | None = None
    try:
        for step in steps:
            elsewhere += step.seconds
            if step.documents:
                some.append(step.documents)
                size += len(step.documents)
            if size >= STEP_BYTES or time.monotonic() - began >= STEP_SECONDS:
                break
        else:
            if not some and not elsewhere:
                return None, None
    except MemoryError:
        raise  # of another process there is enough
    except (Refused, Unavailable) as error:
        failed = error
    except Exception as error:  # noqa: BLE001  a fault of ours, told where the request is
        failed = RuntimeError(repr(error))
    return Step(b",".join(some), elsewhere + time.process_time() - cpu), failed
