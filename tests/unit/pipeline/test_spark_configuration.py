"""What Spark and its Kafka source are told."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.spark.configuration import ADDED, configuration
from pipeline.spark.job import source_options
from servioticy.messaging.connection import KafkaConnection
from servioticy.settings import Settings, changed, load, to_environment
from servioticy.settings.sections import Kafka, Spark

JARS = [Path(__file__), Path("/no/such.jar")]


def test_spark_is_local_unless_somebody_names_another() -> None:
    found = configuration(Spark(), JARS, 3, Path("/scratch"))

    assert found["spark.master"] == f"local[{4 + ADDED},4]"
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"
    assert found["spark.driver.memory"] == "768m"
    assert "spark.jars" not in found, "they are on the class path"
    assert "-XX:+UseSerialGC" in found["spark.driver.extraJavaOptions"]
    assert '"-Djava.io.tmpdir=/scratch"' in found["spark.driver.extraJavaOptions"]


def test_the_settings_name_another_spark() -> None:
    settings = changed(
        Settings(),
        spark_master="spark://far:7077",
        spark_driver_host="10.0.0.5",
        spark_java_options="-XX:+UseZGC",
        spark_conf={"spark.executor.memory": "2g", "spark.ui.enabled": "true"},
    )
    found = configuration(settings.spark, JARS, 3, Path("/scratch"))

    assert found["spark.master"] == "spark://far:7077"
    assert found["spark.jars"] == str(JARS[0])
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "10.0.0.5"
    assert found["spark.driver.extraJavaOptions"].startswith("-XX:+UseZGC ")
    assert found["spark.executor.memory"] == "2g"
    assert found["spark.ui.enabled"] == "true"


def test_the_configuration_of_spark_survives_the_way_to_a_child() -> None:
    settings = changed(Settings(), spark_conf={"spark.executor.memory": "2g"})

    assert load(to_environment(settings)) == settings


def test_the_source_gets_all_of_the_connection() -> None:
    security = Kafka(security_protocol="SASL_SSL", sasl_username="me", sasl_password="secret")
    connection = KafkaConnection("a:1", security)
    found = source_options(connection, "updates", {0: 7, 1: 0})

    assert {f"kafka.{key}": value for key, value in connection.for_java().items()}.items() <= (
        found.items()
    )
    assert json.loads(found["assign"]) == {"updates": [0, 1]}
    assert json.loads(found["startingOffsets"]) == {"updates": {"0": 7, "1": 0}}
