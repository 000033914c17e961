"""Runs the commands that a page prints, as printed: its blocks of `sh`, in order, in one bash.

What a reader does by hand is done by these rules and no others:

- a block that stands under "save this as `NAME`:" becomes that file;
- addresses are those of the platform of the tests, in the place of the printed ports;
- a command has to end with 0; `!` before it says, to the reader, too, that it does not;
- each line `# ...` below a command has to come out of it, or of one that it has left behind:
  where `..` stands anything may, and any other time, id or token than the printed one.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple, Self

SECONDS_FOR_A_COMMAND = 180.0
"""A restore starts a Postgres and a broker: ten seconds, or many times that beside other work."""
SECONDS_FOR_A_LINE = 20.0
LOOP = r"""
while IFS= read -r -d '' command <&8; do
  eval "$command" </dev/null 8<&- 9>&-
  echo $? >&9
done
"""
"""What the bash does; commands come on 8, their ends go to 9, so what they read is not these."""
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"[Ss]ave this as `([\w./-]+)`[^\n]*:\n+\Z")
_OPEN = (
    (re.compile(r"\\\.\\\.+"), ".*"),
    (re.compile(r"\b\d{10,}\b"), r"\\d+"),
    (re.compile(r"\b(?=\w*\d)\w{16,}\b"), r"\\w+"),
    (re.compile(r"\d+:\d\d:\d\d(\\\.\d+)?"), r"[\\d:.]+"),
)
"""What may differ from what is printed: `..`, times, ids and tokens, times of day."""


class Command(NamedTuple):
    """A command of a page, or a file that it has the reader save."""

    text: str
    expected: tuple[str, ...] = ()
    file: str | None = None
    line: int = 0


class Block(NamedTuple):
    """A block of a page in its fence."""

    language: str
    text: str
    line: int
    file: str | None


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for found in _FENCE.finditer(page):
        saved = _SAVED.search(page[: found.start()])
        line = page.count("\n", 0, found.start()) + 2
        yield Block(found[1], found[2], line, saved[1] if saved else None)


def commands(page: str) -> Iterator[Command]:
    """What a page has its reader do, in order."""
    for block in blocks(page):
        if block.file:
            yield Command(block.text, file=block.file, line=block.line)
        elif block.language == "sh":
            yield from _commands_of(block)


def _commands_of(block: Block) -> Iterator[Command]:
    text, expected, line = "", [], block.line
    for number, each in enumerate(block.text.splitlines(), block.line):
        whole = _is_whole(text)
        if whole and text and each.startswith("# "):
            expected.append(each.removeprefix("# "))
            continue
        if whole:
            if text.strip():
                yield Command(text, tuple(expected), line=line)
            text, expected, line = "", [], number
        text += f"{each}\n"
    if text.strip():
        yield Command(text, tuple(expected), line=line)


def _is_whole(text: str) -> bool:
    """Tell whether bash would run it: no quote, here-document or line is open."""
    if text.endswith("\\\n"):
        return False
    checked = subprocess.run(
        ["bash", "-n"], input=text, capture_output=True, text=True, check=False
    )
    return not checked.stderr


def pattern_of(line: str) -> re.Pattern[str]:
    """What fits a printed line of an answer."""
    text = re.escape(line.strip())
    for what, any_other in _OPEN:
        text = what.sub(any_other, text)
    return re.compile(text)


class PageSession:
    """One bash, in which the commands of pages run one after the other."""

    def __init__(self, folder: Path, environment: Mapping[str, str], ports: Mapping[int, int]):
        """`ports`: those that pages print, and those that it is here."""
        self._folder, self._ports = folder, ports
        self.output = folder / "output.txt"
        (folder / ".venv").symlink_to(sys.prefix)
        commands_in, self._commands = os.pipe()
        ends, ends_in = os.pipe()
        self._ends: IO[str] = os.fdopen(ends)
        script = f"exec 8<&{commands_in} 9>&{ends_in}\n{LOOP}"
        with self.output.open("wb") as output:
            self._bash = subprocess.Popen(
                ["bash", "-c", script],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(commands_in, ends_in),
                start_new_session=True,
            )
        os.close(commands_in)
        os.close(ends_in)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and what its commands have left behind."""
        os.close(self._commands)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, 9)
        self._bash.wait()
        self._ends.close()

    def run(self, command: Command, place: str) -> None:
        """Do it. Raises AssertionError with where it stands and what it has said."""
        text = self._here(command.text)
        if command.file:
            (self._folder / command.file).write_text(text)
            return
        before = self.output.stat().st_size
        os.write(self._commands, text.encode() + b"\0")
        code = self._end_of(place)

        def said() -> str:
            with self.output.open("rb") as output:
                output.seek(before)
                return output.read().decode("utf-8", "replace")

        assert code == "0", f"{place}: {text}ended with {code}, and said:\n{said()}"
        for line in command.expected:
            fits = pattern_of(self._here(line))
            deadline = time.monotonic() + SECONDS_FOR_A_LINE
            while not fits.search(said()):
                assert time.monotonic() < deadline, (
                    f"{place}: {text}has not said\n{line}\nbut:\n{said()}"
                )
                time.sleep(0.02)

    def _end_of(self, place: str) -> str:
        ready, _, _ = select.select([self._ends], [], [], SECONDS_FOR_A_COMMAND)
        assert ready, f"{place} has not ended; so far:\n{self.output.read_text()}"
        return self._ends.readline().strip()

    def _here(self, text: str) -> str:
        for printed, here in self._ports.items():
            text = re.sub(rf"(127\.0\.0\.1(?::|\", )){printed}\b", rf"\g<1>{here}", text)
        return text
