"""Aspects for a Java: woven by AspectJ as classes load, by the same file as those of Python.

`aop.xml` has a concrete aspect for each pointcut, of the abstract one in
`deploy/java/aspects`, which measures and writes to a named pipe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from monitoring.configuration import Aspect

PACKAGE = "servioticy.monitoring"
ABSTRACT = f"{PACKAGE}.Measured"
OPTIONS = f"-showWeaveInfo -XmessageHandlerClass:{PACKAGE}.Told"
"""What is woven is told to a class of ours, which counts it."""


def of_java(aspects: Sequence[Aspect]) -> list[Aspect]:
    """Return those that are woven into a Java."""
    return [each for each in aspects if each.language == "java"]


def written(
    folder: Path, aspects: Sequence[Aspect], pipe: Path, name: str, processes: Path | None = None
) -> None:
    """Write what the agent and the aspects read to a folder that is to be on the class path.

    `name` is that of the program, for the ids of nodes. `processes` is the folder in which the
    Java tells what is woven in it, as `monitoring/state.py` has it.
    """
    chosen = of_java(aspects)
    target = folder / "META-INF"
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    (target / "aop.xml").write_text("\n".join(_xml(chosen)), encoding="utf-8")
    settings = {"pipe": str(pipe), "name": name, "aspects": str(len(chosen))}
    if processes is not None:
        settings["processes"] = str(processes)
    for number, each in enumerate(chosen):
        aspect = _aspect(number)
        settings[f"{aspect}.measures"] = ",".join(each.measures)
        settings[f"{aspect}.sample"] = str(each.sample)
        settings[f"{aspect}.purpose"] = each.purpose or each.pointcut
        settings[f"{aspect}.pointcut"] = each.pointcut
        settings[f"{aspect}.sequence"] = each.sequence
    lines = [f"{key}={_property(value)}" for key, value in settings.items()]
    (target / "servioticy-aspects.properties").write_text("\n".join(lines), encoding="ascii")


def _aspect(number: int) -> str:
    return f"Aspect{number}"


def _xml(aspects: Sequence[Aspect]) -> Iterator[str]:
    yield "<aspectj><aspects>"
    for number, each in enumerate(aspects):
        scope = quoteattr(f"execution(* {each.pointcut}(..))")
        yield f'<concrete-aspect name="{PACKAGE}.{_aspect(number)}" extends="{ABSTRACT}">'
        yield f'<pointcut name="scope" expression={scope}/></concrete-aspect>'
    # Nothing else is looked into: a Spark has twenty thousand classes.
    yield f'</aspects><weaver options="{OPTIONS}">'
    for within in (f"{PACKAGE}.*", *(each.pointcut.rpartition(".")[0] for each in aspects)):
        yield f"<include within={quoteattr(within)}/>"
    yield "</weaver></aspectj>"


def _property(text: str) -> str:
    """As files of Java's properties have it."""
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[place : place + 2]) for place in range(0, len(units), 2)]
    return "".join(
        chr(each) if chr(each).isalnum() and each < 128 else f"\\u{each:04x}" for each in codes
    )
