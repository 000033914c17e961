"""Which jars the pipeline gives to Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import __main__ as program
from servioticy.embedded import classes, jars
from servioticy.embedded.classes import Classes
from servioticy.metrics import Registry
from servioticy.settings import load


class Started(Exception):
    """Spark would start now."""


def test_each_jar_is_on_the_class_path_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of our classes, too."""
    monkeypatch.setattr(program.os, "environ", dict(program.os.environ))  # JAVA_HOME is set there
    settings = load()
    given: list[Path] = []

    def session(_settings: Any, classes: list[Path], *_: Any) -> None:
        given.extend(classes)
        raise Started

    for name in ("make_topics", "connect", "check_log", "partition_store"):
        monkeypatch.setattr(program, name, lambda *_: None)
    monkeypatch.setattr(program, "log_ends", lambda *_: SimpleNamespace(partitions=lambda: 1))
    monkeypatch.setattr(program.job, "session", session)
    with pytest.raises(Started):
        program._run(settings, [], Registry())

    assert len(given) == len(set(given))
    assert classes.jar(settings, Classes.BUNDLES) in given
    assert {classes.jar(settings, each) for each in jars.compiled(settings)} <= set(given)
