"""The embedded broker: one Kafka node, broker and controller in one, on loopback."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import struct
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from servioticy.embedded import jars, java, shared_classes
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.java import NOTHING_ADDED, Added
from servioticy.errors import SetupError
from servioticy.settings import Settings

SECONDS_TO_FORMAT = 120
METADATA = struct.pack("!hhihib", 3, 4, 1, -1, 0, 0)  # version 4, no client name, no topics
METADATA_BROKERS_AT = 8  # behind correlation id and throttle time

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
log.dirs={logs}
num.partitions=1
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
# A broker that was killed is let in again when its last session is over: 9 s by default. There is
# no other that could take over, so it may be short; but on a starved machine beats come late, and
# without a session the broker takes nothing until the next.
broker.heartbeat.interval.ms=250
broker.session.timeout.ms=2000
log.cleaner.dedupe.buffer.size=8388608
"""

FLUSH = {
    "os": "",
    # Before the acknowledgement, and for every topic: what is emitted counts, too.
    "always": "log.flush.interval.messages=1\n",
}

LOGGING = """\
status=warn
appender.console.type=Console
appender.console.name=console
appender.console.target=SYSTEM_ERR
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
"""

# Kafka's own logging jars are of an older line; PySpark's stand in front of them.
LOGGING_JARS = ("log4j-api-2*", "log4j-core-2*", "log4j-slf4j2-impl-2*", "slf4j-api-2*")


def new_identity() -> str:
    """Return one of a new Kafka."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


class Member(NamedTuple):
    """One of several nodes of one Kafka: what is true of it, and of no broker that is alone."""

    identity: str
    """Of the whole Kafka: each of its nodes is formatted with it."""
    properties: Mapping[str, str]
    """They win over ours."""


class EmbeddedKafka:
    """One broker in one folder; its ports, identity and logs live there."""

    def __init__(
        self,
        data: Path,
        settings: Settings,
        recording: Path | None = None,
        added: Added = NOTHING_ADDED,
        host: str = ports.LOOPBACK,
        features: Sequence[str] = (),
        member: Member | None = None,
    ) -> None:
        """`recording`: the file for its classes that it writes when it ends.

        `added`: what its Java is begun with as well. `host`: the address to listen on.
        `features`: of Kafka, each as NAME=VERSION, that a new broker has in another version than
        is usual. `member`: it is one of several.
        """
        self._member = member
        self._data = data
        self._host = host
        self._features = features
        self._recording = recording
        self._added = added
        self._settings = settings
        self._properties = data / "server.properties"
        self._logging = data / "log4j2.properties"
        self._scratch = data / "scratch"
        self._port = 0

    def prepare(self) -> None:
        """Choose ports, write the configuration, format the logs if they are new.

        Must be called before each start; raises ServioticyError if it cannot be done.
        """
        self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(exist_ok=True)
        self._port = ports.kept(self._data / "port")
        controller = ports.kept(self._data / "controller-port")
        logs = self._data / "logs"
        configuration = PROPERTIES.format(
            host=self._host, port=self._port, controller=controller, logs=logs
        )
        configuration += FLUSH[self._settings.embedded.broker_flush]
        if self._member is not None:
            configuration += "".join(f"{k}={v}\n" for k, v in self._member.properties.items())
        self._properties.write_text(configuration, encoding="utf-8")
        self._logging.write_text(LOGGING, encoding="utf-8")
        formatted = self._data / "formatted"
        if not formatted.exists():
            shutil.rmtree(logs, ignore_errors=True)
            formatted.write_text(self._format(), encoding="ascii")

    def command(self) -> list[str]:
        """Return the command that runs the broker in the foreground."""
        recording = shared_classes.recording(self._recording) if self._recording else ()
        program = "kafka.Kafka", str(self._properties)
        return self._java(*program, options=recording, added=self._added)

    def environment(self) -> dict[str, str]:
        """Return what the broker needs in its environment: nothing beyond ours."""
        return {}

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return f"{self._host}:{self._port}"

    def is_ready(self) -> bool:
        """Tell whether the broker takes requests and counts itself among the live ones."""
        try:
            with socket.create_connection((self._host, self._port), timeout=1.0) as broker:
                broker.sendall(struct.pack("!i", len(METADATA)) + METADATA)
                with broker.makefile("rb") as answer:
                    size = struct.unpack("!i", answer.read(4))[0]
                    body = answer.read(size)
            return bool(struct.unpack_from("!i", body, METADATA_BROKERS_AT)[0] > 0)
        except (OSError, struct.error):
            return False

    def _format(self) -> str:
        identity = self._member.identity if self._member is not None else new_identity()
        words = ["format", f"--cluster-id={identity}", "--config", str(self._properties)]
        words += [word for each in self._features for word in ("--feature", each)]
        done = subprocess.run(
            self._java("kafka.tools.StorageTool", *words),
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_FORMAT,
        )
        if done.returncode:
            raise SetupError(
                f"the broker cannot format {self._data}: {done.stderr or done.stdout}"
            )
        return identity

    @staticmethod
    def classes(settings: Settings) -> list[Path]:
        """Return its class path."""
        pyspark = java.pyspark_jars()
        logging = [path for pattern in LOGGING_JARS for path in pyspark.glob(f"{pattern}.jar")]
        return [*logging, *jars.classpath(settings, "kafka")]

    def _java(
        self,
        main: str,
        *arguments: str,
        options: Sequence[str] = (),
        added: Added = NOTHING_ADDED,
    ) -> list[str]:
        runtime, classes = java.find(self._settings), self.classes(self._settings)
        return [
            str(runtime.executable),
            f"-Xmx{self._settings.embedded.broker_heap}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={self._logging.as_uri()}",
            f"-Djava.io.tmpdir={self._scratch}",
            *(options or shared_classes.options("kafka", classes, runtime)),
            *added.options,
            "-cp",
            os.pathsep.join(map(str, (*classes, *added.classes))),
            main,
            *arguments,
        ]
