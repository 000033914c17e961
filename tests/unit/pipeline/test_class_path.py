"""How Spark's Java is started, and with which jars."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pipeline.spark import java
from pipeline.spark.configuration import of_java
from servioticy.embedded import classes, jars
from servioticy.embedded.classes import Classes
from servioticy.embedded.java import find, pyspark_jars
from servioticy.errors import SetupError
from servioticy.settings import changed, load


def test_each_jar_is_on_the_class_path_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of our classes, too."""
    monkeypatch.setattr(java.os, "environ", dict(java.os.environ))  # JAVA_HOME is set there
    settings, commands = load(), list[list[str]]()
    monkeypatch.setattr(java.subprocess, "Popen", lambda command, **_: commands.append(command))
    java.Starting(settings, tmp_path)
    ((_, _, class_path, *_),) = commands
    given = [Path(each) for each in class_path.split(os.pathsep)]

    assert len(given) == len(set(given))
    assert classes.jar(settings, Classes.BUNDLES) in given
    assert {classes.jar(settings, each) for each in jars.in_spark(settings)} <= set(given)


def test_a_local_spark_is_started_as_its_launcher_would_start_it(tmp_path: Path) -> None:
    """Of a newer PySpark other parts of Java may have to be open."""
    settings = load()
    runtime = find(settings)
    known = of_java(settings.spark, [tmp_path / "ours.jar"], tmp_path)
    words = [word for key, value in known.items() for word in ("--conf", f"{key}={value}")]
    pyspark = pyspark_jars().parent
    launcher = [runtime.executable, "-cp", f"{pyspark}/jars/*", "org.apache.spark.launcher.Main"]
    told = subprocess.run(
        [*launcher, "org.apache.spark.deploy.SparkSubmit", *words, "pyspark-shell"],
        env={
            **os.environ,
            "SPARK_HOME": str(pyspark),
            "SPARK_SCALA_VERSION": "2.13",
            "JAVA_HOME": str(runtime.home),
        },
        capture_output=True,
        check=True,
        text=True,
    )
    theirs = told.stdout.split("\0\n", 1)[-1].split("\0")
    ours = java.gateway(known, runtime.executable)

    options = theirs[: theirs.index("org.apache.spark.deploy.SparkSubmit")]
    theirs_alone = {each for each in options if each.startswith("-")} - set(ours)
    assert "-Xmx768m" in options
    assert theirs_alone <= {"--add-modules=jdk.incubator.vector"}
    first = theirs[theirs.index("-cp") + 1].split(os.pathsep)
    assert first[0] == str(tmp_path / "ours.jar")
    assert ours[2].split(os.pathsep)[1] in first, "slf4j stands before the others"


def test_another_spark_is_submitted_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java.os, "environ", dict(java.os.environ))
    settings, commands = changed(load(), spark_master="spark://far:7077"), list[list[str]]()
    monkeypatch.setattr(java.subprocess, "Popen", lambda command, **_: commands.append(command))
    java.Starting(settings, tmp_path)

    ((program, *words),) = commands
    assert program.endswith("spark-submit")
    assert "spark.master=spark://far:7077" in words


def test_a_java_that_ends_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java.os, "environ", dict(java.os.environ))
    settings = load()
    monkeypatch.setattr(java, "gateway", lambda *_: ["false"])
    with (
        java.Starting(settings, tmp_path) as started,
        pytest.raises(SetupError, match="does not start"),
        started.known(),
    ):
        pass
