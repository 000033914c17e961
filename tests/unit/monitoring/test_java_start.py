"""The platform's own Java: what it is begun with, and what it costs where nothing is asked for."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from monitoring import java_start, status
from monitoring.applications import java_reading
from pipeline.spark.java import gateway
from servioticy.embedded import jars
from servioticy.embedded.java import NOTHING_ADDED, Added
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import SetupError
from servioticy.settings import Settings, changed
from servioticy.storage.measurements import role_of
from servioticy.storage.roles import Role

OF_JAVA = '[[aspect]]\nlanguage = "java"\npointcut = "kafka.server.KafkaApis.handle"\n'
OF_PYTHON = '[[aspect]]\npointcut = "json.dumps"\n'
AGENT = Path("/jars/weaver.jar"), Path("/jars/aspects.jar")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(jars, "aspects", lambda _: AGENT)
    return changed(Settings(), data=str(tmp_path))


@pytest.mark.parametrize("text", [None, OF_PYTHON, "[[aspect]]\n", "no TOML"])
def test_without_an_aspect_of_java_nothing_is_added(settings: Settings, text: str | None) -> None:
    """Not a word of the command is another, so it costs nothing. Nor is anything left behind."""
    aspects = settings.data_path / "aspects.toml"
    aspects.write_text(OF_JAVA)
    java_start.at_start(settings, "kafka")
    assert java_start.commands(settings.data_path)

    aspects.unlink()
    if text is not None:
        aspects.write_text(text)

    assert java_start.at_start(settings, "kafka") is NOTHING_ADDED
    assert not (java_start.folder_of(settings.data_path) / "kafka").exists()
    assert java_start.commands(settings.data_path) == {}


def test_with_one_it_has_the_agent_and_classes_behind_all_others(settings: Settings) -> None:
    """Behind: what Java keeps ready of its classes fits only a path that begins alike."""
    (settings.data_path / "aspects.toml").write_text(OF_PYTHON + OF_JAVA)
    added = java_start.at_start(settings, "kafka")
    folder = java_start.folder_of(settings.data_path) / "kafka"
    text = (folder / "META-INF/aop.xml").read_text()
    plain, woven = (
        EmbeddedKafka(settings.data_path / "k", settings, added=each)._java("M", added=each)
        for each in (NOTHING_ADDED, added)
    )

    assert added == Added((f"-javaagent:{AGENT[0]}",), (folder, AGENT[1]))
    assert "kafka.server.KafkaApis.handle" in text
    assert "json" not in text
    assert stat.S_ISFIFO(java_start.pipe_of(settings.data_path).stat().st_mode)
    assert [each for each in woven if each not in plain] == [
        added.options[0],
        f"{plain[plain.index('-cp') + 1]}:{folder}:{AGENT[1]}",
    ]
    assert java_start.commands(settings.data_path)[java_start.READER][-1] == (
        "monitoring.applications.java_reading"
    )


def test_spark_has_them_behind_all_others_too() -> None:
    known = {
        "spark.driver.extraClassPath": "/a.jar",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-Da=b",
    }
    plain = gateway(known, Path("/java"))
    woven = gateway(known, Path("/java"), Added(("-javaagent:/w.jar",), (Path("/f"),)))

    assert [each for each in woven if each not in plain] == [f"{plain[2]}:/f", "-javaagent:/w.jar"]
    assert woven.index("-javaagent:/w.jar") < woven.index(
        "org.apache.spark.api.python.PythonGatewayServer"
    )


def test_a_platform_starts_where_there_is_no_agent(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does without the measurements."""

    def missing(_settings: Settings) -> tuple[Path, Path]:
        raise SetupError("run `make setup`")

    monkeypatch.setattr(jars, "aspects", missing)
    (settings.data_path / "aspects.toml").write_text(OF_JAVA)

    assert java_start.at_start(settings, "spark") is NOTHING_ADDED
    assert java_start.commands(settings.data_path) == {}


def test_the_status_says_of_what_no_java_was_begun_with(settings: Settings) -> None:
    """Nothing is woven into a Java that runs."""
    (settings.data_path / "aspects.toml").write_text(OF_JAVA)
    found = status.of(settings)

    assert not found.is_well
    assert "no Java that runs here was begun with it" in "\n".join(status.lines(found))


def test_who_reads_may_write_to_postgres() -> None:
    """As a role that it has a login of."""
    assert role_of(java_reading.PROGRAM) is Role.PIPELINE
