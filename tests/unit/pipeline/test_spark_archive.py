"""Which of the files of Java's classes are taken, and when they are made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.spark import archive
from pipeline.spark.configuration import of_java
from servioticy.embedded import shared_classes
from servioticy.embedded.java import Java
from servioticy.settings import Settings


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two jars, for Spark and the broker, in an environment of their own."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    found = [tmp_path / name for name in ("one.jar", "other.jar")]
    for each in found:
        each.write_bytes(b"")
    monkeypatch.setattr(archive.jars, "spark_jars", lambda _settings: found)
    monkeypatch.setattr(archive, "class_path", lambda own: own)
    monkeypatch.setattr(archive.EmbeddedKafka, "classes", lambda _settings: found)
    monkeypatch.setattr(archive.java, "find", lambda _settings: RUNTIME)
    return found


RUNTIME = Java(Path(sys.executable).parent, Path(sys.executable), 17, "a test")


def made(monkeypatch: pytest.MonkeyPatch, content: bytes | None = b"classes") -> int:
    """How often they were recorded; None: this Java makes none."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> None:
        commands.append(command)
        for each in command[-2:] if content is not None else ():
            Path(each).write_bytes(content or b"")

    monkeypatch.setattr(subprocess, "run", run)
    archive.make(Settings())
    return len(commands)


@pytest.mark.parametrize("use", ["spark", "kafka"])
def test_a_file_is_made_once_and_used(
    use: str, classes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shared_classes.options(use, classes, RUNTIME) == ()

    assert [made(monkeypatch), made(monkeypatch)] == [1, 0]
    target = shared_classes.path(use, classes, RUNTIME)
    assert target.read_bytes() == b"classes"
    assert shared_classes.options(use, classes, RUNTIME) == (f"-XX:SharedArchiveFile={target}",)


def test_other_jars_have_other_files_and_the_old_ones_go(
    classes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are large."""
    made(monkeypatch)
    before = shared_classes.path("spark", classes, RUNTIME)
    classes.pop()

    assert shared_classes.options("spark", classes, RUNTIME) == ()
    assert made(monkeypatch) == 1
    now = {shared_classes.path(use, classes, RUNTIME) for use in ("spark", "kafka")}
    assert set(before.parent.glob("*.jsa")) == now
    assert before not in now


def test_a_java_that_keeps_no_classes_does_without(
    classes: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(monkeypatch, None)

    assert shared_classes.options("spark", classes, RUNTIME) == ()
    assert "starts more slowly" in capsys.readouterr().err


def test_java_is_told_of_it_beside_what_the_settings_say() -> None:
    """What they say comes first, and a path may have spaces."""
    found = of_java(Settings().spark, [], Path("/tmp"), ("-XX:SharedArchiveFile=/a b",))

    options = found["spark.driver.extraJavaOptions"]
    assert options.startswith(Settings().spark.java_options)
    assert '"-XX:SharedArchiveFile=/a b"' in options
