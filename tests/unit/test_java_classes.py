"""The jars of our own Java classes: which are there, which are to be compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from servioticy.embedded import classes, java, setup
from servioticy.embedded.classes import Classes
from servioticy.errors import SetupError
from servioticy.settings import Settings, load


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load({}, {"jars": str(tmp_path / "jars")})


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sources of our own, and a compiler that copies them."""

    def compile_(_classes: Classes, target: Path, _runtime: java.Java, _jars: Path) -> None:
        for source in folder.rglob("*.java"):
            (target / source.with_suffix(".class").name).write_bytes(source.read_bytes())

    folder = tmp_path / "sources"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "One.java").write_text("one")
    monkeypatch.setattr(classes, "_folder", lambda _classes: folder)
    monkeypatch.setattr(classes, "_compile", compile_)
    return folder


RUNTIME = java.Java(Path("/nowhere"), Path("/nowhere/java"), 17, "a test")


def built(settings: Settings) -> Path:
    return classes.build(settings, Classes.BUNDLES, RUNTIME)


def test_a_changed_source_is_compiled_into_another_jar(settings: Settings, sources: Path) -> None:
    first = built(settings)
    (sources / "deep" / "One.java").write_text("two")

    assert classes.jar(settings, Classes.BUNDLES) != first
    with pytest.raises(SetupError, match="missing or damaged; run `make setup`"):
        classes.require(settings, Classes.BUNDLES)
    assert built(settings) != first
    assert first.exists()  # another checkout may use it


def test_a_source_of_another_name_is_another_source(settings: Settings, sources: Path) -> None:
    first = built(settings)
    (sources / "deep" / "One.java").rename(sources / "One.java")

    assert classes.jar(settings, Classes.BUNDLES) != first


@pytest.mark.usefixtures("sources")
def test_another_pyspark_is_another_jar(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built(settings)
    monkeypatch.setattr(classes, "version", lambda _package: "5.0.0")

    assert classes.jar(settings, Classes.BUNDLES) != first


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_jar_is_noticed_and_compiled_again(settings: Settings, damage: str) -> None:
    target = built(settings)
    content = target.read_bytes()
    worse = {"cut": content[:-30], "changed": content.replace(b"one", b"two"), "empty": b""}
    target.write_bytes(worse[damage])

    with pytest.raises(SetupError, match="missing or damaged"):
        classes.require(settings, Classes.BUNDLES)
    built(settings)
    assert classes.require(settings, Classes.BUNDLES) == target
    assert [path.name for path in target.parent.iterdir()] == [target.name]


@pytest.mark.usefixtures("sources")
def test_set_up_says_what_it_compiles_and_does_so_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup.javascript, "missing", lambda _settings: [])
    monkeypatch.setattr(setup.jars, "missing", lambda _settings: [])
    monkeypatch.setattr(setup.java, "find", lambda _settings: RUNTIME)
    setup.prepare(settings)
    first = capsys.readouterr().err
    setup.prepare(settings)

    assert "compiling Java classes: bundles\n" in first
    assert "compiling Java classes: kafka_tokens\n" in first
    assert "compiling" not in capsys.readouterr().err
