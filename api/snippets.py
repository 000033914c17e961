"""Looks at the JavaScript of a new definition in the sandbox, without running it."""

from __future__ import annotations

from sandbox import InfraError, SandboxPool
from servioticy.errors import Unavailable
from servioticy.model import Definition
from servioticy.programs import program


class Snippets:
    """Checks snippets with the engine that will run them."""

    def __init__(self, pool: SandboxPool) -> None:
        self._pool = pool

    def problems(self, definition: Definition) -> list[str]:
        """What is wrong, each with its stream, channel and line; empty: nothing.

        Raises Unavailable where the sandbox cannot say.
        """
        programs = {
            stream.ref.stream: program(stream.ref, 0, stream.composite)
            for stream in definition.streams
            if stream.composite is not None
        }
        try:
            problems = self._pool.check_all(list(programs.values()))
        except InfraError as error:
            raise Unavailable(f"the sandbox cannot look at the code: {error}") from error
        return [
            f"stream {name}: {each}"
            for name, found in zip(programs, problems, strict=True)
            for each in found
        ]
