"""What a manager of machines needs, looked at before Spark is started: Kubernetes, and YARN.

Neither says it well by itself: an executor without an image, or whose driver it cannot reach, is
started anew for ever, and the pipeline waits for slots. What only the cluster knows is not seen
here: whether the image can be fetched, what its account may do, what a queue has left.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from servioticy.errors import SettingsError
from servioticy.settings import Settings
from servioticy.settings.places import is_loopback

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
"""Where a pod finds who it is."""
DEFAULT_EXECUTORS, DEFAULT_CORES = 2, 1
"""Of both managers."""
_KNOWN = re.compile(r"local(\[.+\])?|spark://.+|k8s://.+|yarn|local-cluster\[.+\]")


def check(settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
    """Raises SettingsError where the named master cannot work by these settings: all of why."""
    master = settings.spark.master
    if not master:
        return
    if not _KNOWN.fullmatch(master):
        raise SettingsError(
            f"spark_master = {master}: it has to be spark://HOST:PORT, k8s://https://HOST:PORT, "
            "yarn, or empty"
        )
    archive = settings.spark.archive
    if archive and not Path(archive).is_file():
        raise SettingsError(f"spark_archive = {archive}: there is no such file on this machine")
    of: Callable[[Settings, Mapping[str, str]], Iterator[str]]
    if master.startswith("k8s://"):
        of = _of_kubernetes
    elif master == "yarn":
        of = _of_yarn
    else:
        return
    missing = [*_of_both(settings), *of(settings, environment)]
    if missing:
        raise SettingsError(f"spark_master = {master} needs more: " + "; ".join(missing))


def slots(settings: Settings) -> int | None:
    """Return how many tasks the executors have room for that are asked for; None: it varies."""
    conf = settings.spark.conf
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return None
    try:
        executors = int(conf.get("spark.executor.instances", DEFAULT_EXECUTORS))
        return executors * int(conf.get("spark.executor.cores", DEFAULT_CORES))
    except ValueError:
        return None  # Spark says what is wrong with it


def _of_both(settings: Settings) -> Iterator[str]:
    if is_loopback(settings.spark.driver_host):
        yield (
            f"spark_driver_host = {settings.spark.driver_host}, where no executor reaches the "
            "driver: name an address that they reach"
        )
    servers = settings.log.bootstrap_servers.split(",")
    if any(is_loopback(each.strip().rpartition(":")[0].strip("[]")) for each in servers):
        yield "bootstrap_servers that executors reach: one of them is this machine's own"
    room, partitions = slots(settings), settings.log.partitions
    if room is not None and room < partitions:
        yield (
            f"{partitions} slots for its partitions, and has {room}: raise "
            "spark.executor.instances, or spark.executor.cores, in spark_conf"
        )


def _of_kubernetes(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    conf = settings.spark.conf
    images = ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image")
    if not any(conf.get(each) for each in images):
        yield (
            f"an image for executors ({images[0]} in spark_conf): that of the target `pipeline` "
            "of deploy/docker/Dockerfile"
        )
    config = environment.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    named = any(
        key.startswith("spark.kubernetes.authenticate.")
        and key.endswith(("oauthToken", "oauthTokenFile", "clientKeyFile"))
        for key in conf
    )
    files = [ACCOUNT, *(Path(each) for each in config.split(os.pathsep) if each)]
    if not named and not any(each.is_file() for each in files):
        yield (
            "an account: a pod's own, a kubeconfig, or "
            "spark.kubernetes.authenticate.oauthTokenFile in spark_conf"
        )


def _of_yarn(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    conf = settings.spark.conf
    folders = [environment.get(each, "") for each in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    found = [Path(each) for each in folders if each]
    if not any((each / "yarn-site.xml").is_file() for each in found):
        yield "HADOOP_CONF_DIR or YARN_CONF_DIR, a folder with yarn-site.xml, in its environment"
    archives = conf.get("spark.archives") or conf.get("spark.yarn.dist.archives")
    if not (archives or settings.spark.archive or conf.get("spark.pyspark.python")):
        yield (
            "a Python on the nodes: a packed environment (spark_archive, made by `servioticy "
            "pack`), or spark.pyspark.python in spark_conf where it is installed"
        )
    for each in (archives or "").split(","):
        file = each.partition("#")[0]
        if file and "://" not in file and not Path(file).exists():
            yield f"the archive {file}, which is not there"
    if any(_is_kerberos(each / "core-site.xml") for each in found):
        keytab, principal = (
            conf.get(f"spark.kerberos.{each}", "") for each in ("keytab", "principal")
        )
        if not (keytab and principal):
            yield (
                "a principal, as the cluster has Kerberos: spark.kerberos.principal and "
                "spark.kerberos.keytab in spark_conf (a ticket ends while the pipeline runs)"
            )
        elif not Path(keytab).is_file():
            yield f"the keytab {keytab}, which is not there"


def _is_kerberos(file: Path) -> bool:
    """Whether Hadoop's settings in it ask for Kerberos. Raises SettingsError."""
    if not file.is_file():
        return False
    from xml.etree import ElementTree  # what starts the pipeline has to be light

    try:
        properties = ElementTree.parse(file).iter("property")  # noqa: S314  the operator's own
    except (OSError, ElementTree.ParseError) as error:
        raise SettingsError(f"{file}: {error}") from error
    found = {each.findtext("name"): each.findtext("value") for each in properties}
    return (found.get("hadoop.security.authentication") or "").strip() == "kerberos"
