"""What an application says of itself: `application.toml`, beside its code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from monitoring.configuration import (
    MAX_BYTES,
    Aspect,
    Configuration,
    NotUnderstood,
    read_as,
)

FILE = "application.toml"
OF_PROGRAMS = frozenset({"metrics", "pipe"})
"""Publishers that an application's monitor has no use for."""

Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
Text = Annotated[str, Meta(max_length=1_000, pattern=r"^[^\x00]*$")]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


class Application(Configuration, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole file: what is run, by which engine's driver, and how finely it is watched."""

    name: Name
    engine: Name
    """names a driver"""
    entry: Annotated[str, Meta(min_length=1, max_length=500, pattern=r"^[^\x00]*$")]
    """what the driver runs: a function of a module for Python"""
    arguments: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()
    environment: Annotated[dict[Variable, Text], Meta(max_length=100)] = {}


def read(folder: Path) -> Application:
    """Return what the file in a folder says. Raises NotUnderstood."""
    try:
        with (folder / FILE).open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotUnderstood(f"no {FILE} can be read: {error}") from None
    found = read_as(Application, text)
    if of_programs := OF_PROGRAMS.intersection(found.publish.to):
        raise NotUnderstood(f"{min(of_programs)} is nothing for applications - at `$.publish.to`")
    if taken := sorted(each for each in found.environment if each.startswith("SERVIOTICY_")):
        raise NotUnderstood(f"{taken[0]} is one of ours - at `$.environment`")
    return found


def aspects_text(aspects: tuple[Aspect, ...], pipe: Path) -> str:
    """Return a file of aspects that tells a pipe: what each process of the application follows."""
    lines = ["[publish]", 'to = ["pipe"]', f"pipe = {_quoted(str(pipe))}"]
    for each in (each for each in aspects if each.language == "python"):
        measures = ", ".join(map(_quoted, each.measures))
        lines += [
            "",
            "[[aspect]]",
            f"pointcut = {_quoted(each.pointcut)}",
            f"advice = {_quoted(each.advice)}",
            f"measures = [{measures}]",
            f"sample = {each.sample}",
            f"purpose = {_quoted(each.purpose)}",
            f"sequence = {_quoted(each.sequence)}",
        ]
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    """As TOML's basic strings have it: with escapes for all that is not a plain character."""
    kept = (
        each if each.isprintable() and each not in '"\\' else f"\\U{ord(each):08x}"
        for each in text
    )
    return f'"{"".join(kept)}"'
