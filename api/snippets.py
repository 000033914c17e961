"""Looks at the JavaScript of a new definition in the sandbox, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sandbox import InfraError, Program, TookTooLong
from servioticy.domain.documents import BadDocument
from servioticy.domain.model import Definition
from servioticy.domain.scripts import program
from servioticy.errors import Unavailable

SECONDS = 10.0
"""For the code of one document, waiting for others' included."""


class Checker(Protocol):
    """What is needed of the sandbox."""

    def check_all(
        self, programs: Sequence[Program], within: float | None = None
    ) -> list[list[str]]:
        """For each program what is wrong with it. Raises TookTooLong."""


class Snippets:
    """Checks snippets with the engine that will run them."""

    def __init__(self, pool: Checker, seconds: float = SECONDS) -> None:
        self._pool = pool
        self._seconds = seconds

    def problems(self, definition: Definition) -> list[str]:
        """What is wrong, each with its stream, channel and line; empty: nothing.

        Raises BadDocument where it takes too long to say, Unavailable where the sandbox
        cannot.
        """
        programs = {
            stream.ref.stream: program(stream.ref, 0, stream.composite)
            for stream in definition.streams
            if stream.composite is not None
        }
        try:
            problems = self._pool.check_all(list(programs.values()), within=self._seconds)
        except TookTooLong as error:
            raise BadDocument("The code of the document takes too long to check") from error
        except InfraError as error:
            raise Unavailable(f"the sandbox cannot look at the code: {error}") from error
        return [
            f"stream {name}: {each}"
            for name, found in zip(programs, problems, strict=True)
            for each in found
        ]
