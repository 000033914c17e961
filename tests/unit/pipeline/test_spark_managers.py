"""A master of Kubernetes or YARN that lacks something is refused before Spark is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.spark import managers
from pipeline.spark.configuration import of_java
from pipeline.spark.here import OWN_PLACES
from servioticy.errors import SettingsError
from servioticy.settings import Settings, changed

IMAGE = {"spark.kubernetes.container.image": "registry.example.org/servioticy-pipeline:1"}
KERBEROS = """<configuration><property><name>hadoop.security.authentication</name>
<value>kerberos</value></property></configuration>"""


def settings(master: str, conf: dict[str, str] | None = None, **more: Any) -> Settings:
    own = {"spark_driver_host": "10.0.0.4", "bootstrap_servers": "kafka.example.org:9092"}
    return changed(Settings(), spark_master=master, spark_conf=conf or {}, **{**own, **more})


def why(chosen: Settings, **environment: str) -> str:
    with pytest.raises(SettingsError) as found:
        managers.check(chosen, environment)
    return str(found.value)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    file = tmp_path / "kubeconfig"
    file.write_text("apiVersion: v1\n")
    return str(file)


@pytest.fixture
def hadoop(tmp_path: Path) -> Path:
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    return tmp_path


@pytest.mark.parametrize("master", ["", "local[4]", "spark://10.0.0.1:7077"])
def test_others_need_nothing_of_this(master: str) -> None:
    managers.check(settings(master, spark_driver_host="127.0.0.1"), {})


@pytest.mark.parametrize("master", ["mesos://a:1", "10.0.0.1:7077", "yarn-client"])
def test_what_is_no_master_is_refused(master: str) -> None:
    assert "it has to be spark://HOST:PORT" in why(settings(master))


def test_kubernetes_needs_an_image_and_an_account(kubeconfig: str) -> None:
    chosen = settings("k8s://https://10.0.0.9:6443")

    told = why(chosen, KUBECONFIG="/no/such")
    assert "an image for executors" in told and "an account" in told
    assert "an account" not in why(chosen, KUBECONFIG=kubeconfig)
    managers.check(settings(chosen.spark.master, IMAGE), {"KUBECONFIG": kubeconfig})
    token = {"spark.kubernetes.authenticate.oauthTokenFile": "/run/token"}
    managers.check(settings(chosen.spark.master, IMAGE | token), {"KUBECONFIG": "/no/such"})


def test_what_executors_do_not_reach_is_refused(kubeconfig: str) -> None:
    away = {"spark_driver_host": "127.0.0.1", "bootstrap_servers": "a:1,[::1]:9092"}
    told = why(settings("k8s://https://10.0.0.9", IMAGE, **away), KUBECONFIG=kubeconfig)

    assert "spark_driver_host = 127.0.0.1" in told
    assert "bootstrap_servers" in told


@pytest.mark.parametrize(
    ("conf", "is_enough"),
    [
        ({}, False),
        ({"spark.executor.instances": "3"}, True),
        ({"spark.executor.cores": "2"}, True),
        ({"spark.dynamicAllocation.enabled": "true"}, True),
        ({"spark.executor.instances": "many"}, True),
    ],
    ids=["default", "instances", "cores", "dynamic", "Spark's to refuse"],
)
def test_each_partition_needs_a_slot(
    conf: dict[str, str], is_enough: bool, kubeconfig: str
) -> None:
    chosen = settings("k8s://https://10.0.0.9", IMAGE | conf, partitions=3)

    if is_enough:
        managers.check(chosen, {"KUBECONFIG": kubeconfig})
    else:
        assert "3 slots for its partitions, and has 2" in why(chosen, KUBECONFIG=kubeconfig)


def test_yarn_needs_its_settings_and_a_python(hadoop: Path) -> None:
    told = why(settings("yarn"))
    assert "yarn-site.xml" in told and "a Python on the nodes" in told

    there = {"HADOOP_CONF_DIR": str(hadoop)}
    managers.check(settings("yarn", {"spark.pyspark.python": "/opt/env/bin/python"}), there)
    packed = {"spark.archives": f"{hadoop / 'env.tar.gz'}#environment"}
    assert "which is not there" in why(settings("yarn", packed), **there)
    (hadoop / "env.tar.gz").touch()
    managers.check(settings("yarn", packed), there)


def test_yarn_with_kerberos_needs_a_principal(hadoop: Path) -> None:
    (hadoop / "core-site.xml").write_text(KERBEROS)
    there = {"YARN_CONF_DIR": str(hadoop)}
    conf = {"spark.pyspark.python": "python3"}

    assert "a principal" in why(settings("yarn", conf), **there)
    conf |= {"spark.kerberos.principal": "me", "spark.kerberos.keytab": str(hadoop / "keytab")}
    assert "which is not there" in why(settings("yarn", conf), **there)
    (hadoop / "keytab").touch()
    managers.check(settings("yarn", conf), there)


def test_what_is_no_xml_is_named(hadoop: Path) -> None:
    (hadoop / "core-site.xml").write_text("<configuration>")

    told = why(settings("yarn", {"spark.pyspark.python": "python3"}), HADOOP_CONF_DIR=str(hadoop))
    assert "core-site.xml" in told


@pytest.mark.parametrize("master", ["yarn", "k8s://https://a"])
def test_executors_go_by_the_places_of_their_own_machine(master: str) -> None:
    """As those of `servioticy spark worker` do: an image has folders of its own."""
    conf = of_java(settings(master).spark, [], Path("/scratch"))

    assert conf[f"spark.executorEnv.{OWN_PLACES}"] == "1"
    assert f"spark.executorEnv.{OWN_PLACES}" not in of_java(
        settings("spark://a:1").spark, [], Path("/scratch")
    )
