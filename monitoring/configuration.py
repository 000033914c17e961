"""What is woven where, and who is told: a TOML file, read as a whole or not at all."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from servioticy.errors import ServioticyError
from servioticy.settings import Settings

MAX_BYTES = 64 * 1024

Pattern = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[\w.*?]+$")]
Words = Annotated[str, Meta(max_length=100)]
Measure = Literal["runtime", "profile", "count"]
Target = Literal["file", "log", "metrics", "otlp", "kafka", "postgres", "own", "pipe"]
HeaderName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,100}$")]
HeaderText = Annotated[str, Meta(pattern=r"^[\x20-\x7e]{0,2000}$")]
Rate = Annotated[float, Meta(ge=0, le=1)]
_IN_JAVA = re.compile(r"^(arg\d{1,2}(\.\w+)*)?$", re.ASCII)


class NotUnderstood(ServioticyError):
    """The file says nothing that could be woven; the message says where it is wrong."""


class Aspect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is woven around, before or after the functions of one pointcut."""

    pointcut: Pattern
    """the name of one of ours, or a function by module and name; `*` is any part between dots"""
    advice: Literal["around", "before", "after"] = "around"
    measures: Annotated[tuple[Measure, ...], Meta(min_length=1, max_length=3)] = ("runtime",)
    sample: Rate = 1.0
    """the part of the sequences that is measured; calls are all counted"""
    purpose: Words = ""
    sequence: Annotated[str, Meta(max_length=100, pattern=r"^([A-Za-z_]\w*(\.(\w+|\*))*)?$")] = ""
    """where a sequence's id, or trace contexts, stand among the arguments: `updates.*.trace`"""
    language: Literal["python", "java"] = "python"
    """Java's methods are woven as they load, by those who begin a Java"""


class Publish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is told of measurements, and how much may wait for it."""

    to: Annotated[tuple[Target, ...], Meta(min_length=1, max_length=10)] = ("file",)
    buffer_bytes: Annotated[int, Meta(ge=4_096, le=1 << 30)] = 4 << 20
    file_bytes: Annotated[int, Meta(ge=4_096, le=1 << 40)] = 64 << 20
    """of one process's file; a full one is kept until the next is"""
    otlp_url: Annotated[str, Meta(max_length=500, pattern=r"^https?://[^\s/]+\S*$")] = (
        "http://127.0.0.1:4318"
    )
    """a collector's; `/v1/traces` and `/v1/metrics` are put behind it"""
    otlp_headers: Annotated[dict[HeaderName, HeaderText], Meta(max_length=20)] = {}
    """sent along: what a collector may want to know of us"""
    kafka_topic: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,190}$")] = (
        "measurements"
    )
    """on the platform's brokers, behind its prefix"""
    kafka_bytes: Annotated[int, Meta(ge=1 << 20, le=1 << 40)] = 256 << 20
    """that the topic keeps, if it is made for it"""
    postgres_rows: Annotated[int, Meta(ge=1_000, le=100_000_000)] = 1_000_000
    """of all processes together: the oldest go"""
    own: Annotated[str, Meta(max_length=1_000)] = ""
    """a file of Python with a function `publish`; beside the file of aspects"""
    pipe: Annotated[str, Meta(max_length=4_000, pattern=r"^[^\x00]*$")] = ""
    """a named pipe that another process reads"""


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file."""

    aspect: Annotated[tuple[Aspect, ...], Meta(max_length=100)] = ()
    publish: Publish = Publish()


Chosen = TypeVar("Chosen", bound=Configuration)


def parsed(text: bytes) -> Configuration:
    """Return what a file says. Raises NotUnderstood."""
    return read_as(Configuration, text)


def file_of(settings: Settings) -> Path:
    """Return the file of aspects."""
    chosen = settings.monitoring.aspects
    return Path(chosen).expanduser().resolve() if chosen else settings.data_path / "aspects.toml"


def read(file: Path) -> Configuration:
    """Return what a file says. Raises NotUnderstood."""
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotUnderstood(str(error)) from None
    return parsed(text)


def stamp_of(file: Path) -> tuple[int, ...] | None:
    """Return what changes whenever the file does; None where there is none."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def read_as(kind: type[Chosen], text: bytes) -> Chosen:
    """Return what a file says that has more in it than aspects. Raises NotUnderstood."""
    if len(text) > MAX_BYTES:
        raise NotUnderstood(f"it has more than {MAX_BYTES} bytes")
    try:
        read = msgspec.convert(tomllib.loads(text.decode()), kind)
    except (ValueError, RecursionError) as error:  # msgspec's errors are such, and TOML's
        raise NotUnderstood(str(error)) from None
    for number, each in enumerate(read.aspect):
        if each.advice != "around" and each.measures != ("runtime",):
            raise NotUnderstood(
                f"only what is woven around profiles and counts - at `$.aspect[{number}].measures`"
            )
    for number, each in enumerate(read.aspect):
        if each.language == "java" and each.advice != "around":
            raise NotUnderstood(
                f"in Java there is advice around methods only - at `$.aspect[{number}].advice`"
            )
        if each.language == "java" and not _IN_JAVA.match(each.sequence):
            raise NotUnderstood(
                "in Java a sequence stands in an argument by its number, as arg0.id "
                f"- at `$.aspect[{number}].sequence`"
            )
        if each.language == "java" and ("?" in each.pointcut or "." not in each.pointcut):
            raise NotUnderstood(
                f"in Java a pointcut is Class.method, without ? - at `$.aspect[{number}].pointcut`"
            )
    for name in ("own", "pipe"):
        if name in read.publish.to and not getattr(read.publish, name):
            raise NotUnderstood(f"no file is named that publishes - at `$.publish.{name}`")
    return read
