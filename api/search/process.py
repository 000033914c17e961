"""`python -m api.search.process FD`: searches for an API process, step by step."""

from __future__ import annotations

import pickle
import resource
import time
from collections.abc import Iterator

from api.search.searching import Searches, SearchesHere, Step
from servioticy import bootstrap
from servioticy.apart.answering import serve
from servioticy.errors import Unavailable
from servioticy.settings import load

STEP_SECONDS = 0.05
STEP_BYTES = 262_144
"""Of a step: others wait for it, and each takes a message here and back."""
MEMORY_BYTES = 1024 * 1024 * 1024
"""Of data; what is remembered is a twelfth of it."""


class Answering:
    """The searches that are begun here."""

    def __init__(self, searches: Searches) -> None:
        self._searches = searches
        self._begun: dict[int, Iterator[Step]] = {}
        """by number; as many as `SearchesApart` lets begin"""

    def answer(self, request: bytes) -> bytes:
        """Return the next step of a search, None after the last, or what went wrong.

        A request names the searches that nobody wants any more, the number of one, and what is
        searched for where that begins.
        """
        ended, number, search = pickle.loads(request)  # noqa: S301  the API made it
        for each in ended:
            self._begun.pop(each, None)
        if search is not None:
            self._begun[number] = self._searches.steps(search)
        return pickle.dumps(self._step(number), pickle.HIGHEST_PROTOCOL)

    def _step(self, number: int) -> Step | Exception | None:
        steps = self._begun.get(number)
        if steps is None:
            return Unavailable("the process that searches has ended meanwhile; search again")
        try:
            found = _together(steps)
        except MemoryError:
            raise  # of another process there is enough
        except Unavailable as error:
            found = error
        except Exception as error:  # noqa: BLE001  a fault of ours, told where the request is
            found = RuntimeError(repr(error))
        if not isinstance(found, Step):
            del self._begun[number]
        return found


def _together(steps: Iterator[Step]) -> Step | Exception | None:
    """Return what the next steps find until there is enough of it, or time is over."""
    began, cpu = time.monotonic(), time.process_time()
    some: list[bytes] = []
    size = 0
    for step in steps:
        if step.documents:
            some.append(step.documents)
            size += len(step.documents)
        if size >= STEP_BYTES or time.monotonic() - began >= STEP_SECONDS:
            break
    else:
        if not some:
            return None
    return Step(b",".join(some), time.process_time() - cpu)


def main() -> None:
    """Search until nobody asks any more."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    history, stored = bootstrap.searched(load())
    serve(Answering(SearchesHere(history, stored)).answer)


if __name__ == "__main__":
    main()
