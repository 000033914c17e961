"""Which archive of Spark's classes is taken, and when one is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.spark import archive
from servioticy.embedded.java import Java
from servioticy.settings import Settings


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two jars, in an environment of their own."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    found = [tmp_path / name for name in ("one.jar", "other.jar")]
    for each in found:
        each.write_bytes(b"")
    monkeypatch.setattr(archive.jars, "spark_jars", lambda _settings: found)
    monkeypatch.setattr(archive.java, "find", lambda _settings: RUNTIME)
    return found


RUNTIME = Java(Path(sys.executable).parent, Path(sys.executable), 17, "a test")


def made(monkeypatch: pytest.MonkeyPatch, content: bytes | None = b"classes") -> int:
    """How often Spark was started to make the archive; None: this Java makes none."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> None:
        commands.append(command)
        if content is not None:
            Path(command[-1]).write_bytes(content)

    monkeypatch.setattr(subprocess, "run", run)
    archive.make(Settings())
    return len(commands)


def test_an_archive_is_made_once_and_used(
    classes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive.options(classes, RUNTIME) == ()

    assert [made(monkeypatch), made(monkeypatch)] == [1, 0]
    target = archive.path(classes, RUNTIME)
    assert target.read_bytes() == b"classes"
    assert archive.options(classes, RUNTIME) == (f"-XX:SharedArchiveFile={target}",)


def test_other_jars_have_another_archive_and_the_old_one_goes(
    classes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is large."""
    made(monkeypatch)
    before = archive.path(classes, RUNTIME)
    classes.pop()

    assert archive.options(classes, RUNTIME) == ()
    assert made(monkeypatch) == 1
    assert list(before.parent.glob("*.jsa")) == [archive.path(classes, RUNTIME)] != [before]


def test_a_java_that_keeps_no_classes_does_without(
    classes: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(monkeypatch, None)

    assert archive.options(classes, RUNTIME) == ()
    assert "starts more slowly" in capsys.readouterr().err


def test_java_is_told_of_it_beside_what_the_settings_say() -> None:
    """What they say comes first, and a path may have spaces."""
    from pipeline.spark.job import configuration

    found = configuration(Settings().spark, [], 1, Path("/tmp"), ("-XX:SharedArchiveFile=/a b",))

    options = found["spark.driver.extraJavaOptions"]
    assert options.startswith(Settings().spark.java_options)
    assert '"-XX:SharedArchiveFile=/a b"' in options
