"""Looks at the JavaScript of a new definition in the sandbox, without running it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from sandbox import HadToWait, InfraError, Program, TookTooLong
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.code import POST_FILTER, PRE_FILTER, code_of
from servioticy.domain.documents.codes import BAD_CODE, TOO_SLOW
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.model import Composite, Definition, StreamRef
from servioticy.domain.scripts import programs_of
from servioticy.domain.windowed import FOLD, WHEN
from servioticy.errors import Unavailable

SECONDS = 10.0
"""For the code of one document, waiting for others' included."""


class Checker(Protocol):
    """What is needed of the sandbox."""

    def check_all(
        self,
        programs: Sequence[Program],
        within: float | None = None,
        tenant: str = "",
        patience: float | None = None,
    ) -> list[list[str]]:
        """For each program what is wrong with it. Raises TookTooLong."""


class Snippets:
    """Checks snippets with the engine that will run them."""

    def __init__(
        self,
        pool: Checker,
        seconds: float = SECONDS,
        patience: Callable[[], float] = lambda: SECONDS,
    ) -> None:
        """`patience`: how long whoever asks now waits for what nobody else wants."""
        self._pool = pool
        self._seconds = seconds
        self._patience = patience

    def problems(self, tenant: int, definition: Definition) -> list[BadDocument]:
        """Return what is wrong, each with its stream, channel and line; empty: nothing.

        Raises BadDocument where it takes too long to say, Unavailable where the sandbox
        cannot.
        """
        composites = [
            (stream.ref, stream.composite, each)
            for stream in definition.streams
            if stream.composite is not None
            for each in programs_of(stream)
        ]
        problems = self.of_programs(tenant, [each for *_, each in composites])
        return [
            each
            for (ref, composite, _), found in zip(composites, problems, strict=True)
            for each in _placed(ref, composite, found)
        ]

    def of_programs(self, tenant: int, programs: Sequence[Program]) -> list[list[str]]:
        """Return what is wrong with each. Raises BadDocument, Unavailable as `problems` does."""
        try:
            return self._pool.check_all(programs, self._seconds, str(tenant), self._patience())
        except HadToWait as error:
            reason = "the code of the document has to wait to be looked at; try again later"
            raise Unavailable(reason) from error
        except TookTooLong as error:
            reason = "The code of the document takes too long to check"
            raise BadDocument(reason, "", TOO_SLOW) from error
        except InfraError as error:
            raise Unavailable(f"the sandbox cannot look at the code: {error}") from error


def _placed(ref: StreamRef, composite: Composite, problems: list[str]) -> Iterator[BadDocument]:
    """Yield the problems of one stream.

    The sandbox names in the first words of each where it is.
    """
    stream = WHOLE.at("streams", ref.stream, words=f"stream {ref.stream}")
    parts = {f"channel {each.name}": code_of(stream, each.name) for each in composite.channels}
    parts |= {name: stream.at(name) for name in (PRE_FILTER, POST_FILTER, FOLD)}
    parts[WHEN] = stream.at("window", "emit", WHEN)
    for problem in problems:
        where, _, _ = problem.partition(": line ")
        reason = f"{stream.words}: {problem}"
        yield BadDocument(reason, parts.get(where, stream).pointer, BAD_CODE)
