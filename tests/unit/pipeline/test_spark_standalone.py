"""The commands of a Spark's master and workers, and what a worker knows by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.spark import standalone
from pipeline.spark.configuration import configuration, of_java
from pipeline.spark.here import OWN_PLACES, here
from pipeline.spark.standalone import Place
from servioticy.errors import SettingsError
from servioticy.settings import Settings, changed, to_environment

MASTER = "spark://10.0.0.1:7077"


def test_who_has_no_secret_listens_on_loopback_only(tmp_path: Path) -> None:
    command, _ = standalone.master(Settings(), Place("127.0.0.1", 7077, tmp_path))
    told = Path(command[command.index("--properties-file") + 1]).read_text()
    assert "spark.master.rest.enabled false\n" in told, "it would ask for no secret"

    with pytest.raises(SettingsError, match="spark_secret"):
        standalone.master(Settings(), Place("10.0.0.1", 7077, tmp_path))
    with pytest.raises(SettingsError, match="spark_secret"):
        standalone.worker(Settings(), Place("0.0.0.0", 0, tmp_path), MASTER, 1, "1g")


def test_the_secret_is_in_a_file_that_only_we_read(tmp_path: Path) -> None:
    settings = changed(Settings(), spark_secret="open sesame")
    command, _ = standalone.worker(settings, Place("10.0.0.2", 0, tmp_path), MASTER, 3, "1g")
    file = Path(command[command.index("--properties-file") + 1])

    assert "open sesame" not in " ".join(command)
    assert "spark.authenticate.secret open sesame\n" in file.read_text()
    assert "spark.network.crypto.enabled true\n" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert command[command.index("--cores") + 1] == "3"
    assert command[-1] == MASTER


def test_the_driver_tells_the_secret_to_spark_and_not_to_its_command(tmp_path: Path) -> None:
    settings = changed(Settings(), spark_secret="open sesame", spark_master=MASTER).spark
    java = of_java(settings, [], tmp_path)
    session = configuration(settings, [], 2, tmp_path)

    assert "open sesame" not in " ".join(java.values())
    assert session["spark.authenticate.secret"] == "open sesame"


def test_a_worker_is_of_a_master(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="spark://HOST:PORT"):
        standalone.worker(
            Settings(), Place("127.0.0.1", 0, tmp_path), "http://10.0.0.1:8080", 1, "1g"
        )


def test_a_machine_has_places_of_its_own_and_all_else_of_the_pipeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipelines = changed(
        Settings(), data="/pipelines", kafka_ssl_ca="/pipelines/ca.pem", dsn="far", max_hops=7
    )
    own = changed(Settings(), data="/own", kafka_ssl_ca="/own/ca.pem", dsn="near", max_hops=9)

    assert here(pipelines) == pipelines, "where it is no worker's"
    for name, value in {**to_environment(own), OWN_PLACES: "1"}.items():
        monkeypatch.setenv(name, value)
    found = here(pipelines)

    assert (found.data, found.kafka.ssl_ca) == ("/own", "/own/ca.pem")
    assert (found.store.dsn, found.limits.max_hops) == ("far", 7)
