"""Every setting of every program, by section: its bounds, its default, what it is.

A setting's name is the section's prefix and the field's name, unless the field gives
another; it is unique. Safe by default: loopback only, and no secret has a default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from servioticy.settings.kinds import (
    Bytes,
    Count,
    Heap,
    MetricsPort,
    Milliseconds,
    Name,
    Number,
    Part,
    Prefix,
    Seconds,
    SparkConf,
    StoreUrl,
    setting,
)
from servioticy.settings.outward import (
    Api,
    Bridge,
    Delivery,
    Functions,
    Identity,
    Mqtt,
    Requests,
    Tls,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Store:
    """Postgres."""

    PREFIX: ClassVar[str] = ""

    dsn: str = setting(
        "", "Postgres to use instead of the embedded one (libpq DSN or URL)", secret=True
    )
    retention_days: Annotated[int, Meta(ge=0, le=36_500)] = setting(
        0,
        "how many days back the history of a stream reaches whose document has no `dataTTL`; "
        "0: to its beginning",
    )


@dataclass(frozen=True, slots=True)
class Log:
    """Kafka."""

    PREFIX: ClassVar[str] = ""

    bootstrap_servers: str = setting("", "Kafka to use instead of the embedded broker")
    partitions: Annotated[int, Meta(ge=1, le=10_000)] = setting(
        1, "partitions of the topics: those that are missing are added, none is taken away"
    )
    replication_factor: Annotated[int, Meta(ge=0, le=32)] = setting(
        0, "brokers that hold each new topic; 0: as many as the broker has for its default"
    )
    min_insync_replicas: Annotated[int, Meta(ge=0, le=32)] = setting(
        0,
        "so many of them have to have what is acknowledged, else nothing is taken; raised where a "
        "topic has less; 0: as the broker has it",
    )
    topic_prefix: Prefix = setting("", "put before every topic's name, to share a broker")
    log_retention_days: Annotated[int, Meta(ge=1, le=36_500)] = setting(
        30, "how long the broker keeps updates at least: who is away for longer misses some"
    )
    accept_timeout_seconds: Seconds = setting(
        10.0, "how long the API and MQTT wait for the log: then 503, or no PUBACK"
    )


@dataclass(frozen=True, slots=True)
class Kafka:
    """How a Kafka of one's own is spoken to."""

    PREFIX: ClassVar[str] = "kafka_"

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = setting(
        "PLAINTEXT", "SSL: encrypted; SASL: with a password"
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = setting(
        "PLAIN", "how the password is told"
    )
    sasl_username: str = setting("", "who we are")
    sasl_password: str = setting("", "our password", secret=True)
    ssl_ca: str = setting(
        "",
        "PEM file of the authorities that vouch for the brokers (empty: those of the machine)",
        place=True,
    )
    ssl_certificate: str = setting(
        "", "PEM file of our certificate and its chain, for mutual TLS", place=True
    )
    ssl_key: str = setting("", "PEM file of its key (PKCS #8)", place=True)
    ssl_key_password: str = setting("", "password of the key", secret=True)
    ssl_check_host: bool = setting(True, "whether a broker's certificate has to name its host")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How the streaming job takes the log."""

    PREFIX: ClassVar[str] = ""

    metrics_port: MetricsPort = setting(
        9403, "port of the pipeline's `/metrics`; 0: none", name="pipeline_metrics_port"
    )
    max_batch_updates: Count = setting(1_000, "most updates stored in one transaction")
    tenant_share: Part = setting(
        0.5, "part of a partition's time that one tenant may use while others are active"
    )
    head_cache_bytes: Bytes = setting(
        268_435_456, "last updates kept in memory per partition, in bytes"
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """How far one update may go."""

    PREFIX: ClassVar[str] = ""

    max_hops: Count = setting(100, "how many composites deep one update may go")
    max_computations: Number = setting(
        10_000, "computations of one tenant that one update may cause; more get a verdict"
    )
    max_tree_bytes: Bytes = setting(
        8_388_608, "bytes of one tenant's outputs from one update; what follows gets a verdict"
    )
    max_tree_script_ms: Milliseconds = setting(
        500, "time of one tenant's scripts for one update, in ms; what follows gets a verdict"
    )


@dataclass(frozen=True, slots=True)
class Spark:
    """The Spark that runs the streaming job."""

    PREFIX: ClassVar[str] = "spark_"

    master: Annotated[str, Meta(pattern=r"^\S*$", description="text without spaces")] = setting(
        "", "Spark master (empty: local, with a slot for every partition)"
    )
    driver_host: Name = setting(
        "127.0.0.1", "address of the driver; with another master one that its machines reach"
    )
    secret: str = setting(
        "",
        "what all of a cluster of `servioticy spark` know: without it nobody may compute there, "
        "and what they tell each other is encrypted by it",
        secret=True,
    )
    java_options: str = setting(
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData", "options of the driver's Java"
    )
    archive: str = setting(
        "",
        "archive made by `servioticy pack`, which executors get from the driver; empty: they have "
        "an environment of their own",
        place=True,
    )
    conf: SparkConf = setting(
        {},
        "any configuration of Spark; wins over ours. Not for secrets: the list of processes "
        "shows it",
    )
    trigger: Literal["realtime", "micro-batch", "available-now"] = setting(
        "realtime",
        "how Spark takes the log; micro-batch: batch after batch, for a Spark without real-time "
        "mode; available-now: what is there, then the program ends with exit code 0",
    )
    batch_seconds: Annotated[int, Meta(ge=1, le=86_400)] = setting(
        300, "length of one Spark real-time batch, in seconds", name="batch_seconds"
    )
    heap: Heap = setting("768m", "Java heap of the pipeline's Spark driver", name="pipeline_heap")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Where tenants' code runs."""

    PREFIX: ClassVar[str] = "sandbox_"

    budget_ms: Milliseconds = setting(
        100,
        "budget of one frame into the sandbox, in ms; by the clock up to four times that",
        name="script_budget_ms",
    )
    budget_ms_per_update: Annotated[float, Meta(ge=0, le=10_000)] = setting(
        1.0,
        "added to the budget for each computation that the frame may hold, in ms",
        name="script_budget_ms_per_update",
    )
    clock: Literal["frozen", "running"] = setting(
        "frozen",
        "the time that scripts find; frozen: the trigger's; running: a millisecond more at each "
        "look, so that loops that wait for it end",
        name="script_clock",
    )
    workers: Annotated[int, Meta(ge=1, le=10_000)] = setting(
        64, "most sandbox processes alive per partition"
    )
    protection: Literal["required", "any"] = setting(
        "required",
        "required: run no script without seccomp, or as root; any: with what the machine allows",
    )
    engine: Literal["v8", "quickjs"] = setting(
        "v8", "v8, or quickjs: slower, for a day without a safe V8"
    )


@dataclass(frozen=True, slots=True)
class Operators:
    """Tenants' own programs that compute composites."""

    PREFIX: ClassVar[str] = "operators_"

    protection: Literal["required", "any"] = setting(
        "required",
        "required: programs run only where they can be enclosed, of tenants with a quota of "
        "`operators`; any: all tenants are your own, and their programs run anyhow",
    )
    places: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        8, "most processes of programs per partition; a tenant has half of them at most"
    )
    idle_seconds: Seconds = setting(300.0, "after so long without work such a process is ended")
    start_seconds: Seconds = setting(30.0, "in which such a process has to be ready")
    folder: str = setting(
        "",
        "folder of unpacked programs (default: `operators` in the data folder)",
        name="operators",
        place=True,
    )
    cgroup: str = setting(
        "",
        "a cgroup v2 without processes that we may write to, below which such processes get "
        "groups of their own (default: below the pipeline's, where that can be)",
        place=True,
    )
    transport: Literal["socket", "queue"] = setting(
        "socket",
        "what is between the pipeline and such a process: a socket, or a queue in a store in "
        "memory (Valkey, Redis)",
    )
    store: StoreUrl = setting(
        "",
        "that store, in place of one that each partition brings along; who is named there has to "
        "be allowed to make users (`ACL SETUSER`)",
        secret=True,
    )
    store_ca: str = setting(
        "",
        "PEM file of the authorities that vouch for that store (empty: those of the machine)",
        place=True,
    )
    docker: str = setting(
        "",
        "socket of a Docker on this machine, in whose containers such programs run, in place of "
        "processes (`/var/run/docker.sock`)",
        place=True,
    )
    image: str = setting(
        "python:3.11-slim",
        "image of these containers, which Docker has: with `python3` and what programs are run by",
    )


@dataclass(frozen=True, slots=True)
class Embedded:
    """What `servioticy up` and `make setup` bring along."""

    PREFIX: ClassVar[str] = ""

    metrics_port: MetricsPort = setting(
        9400, "port of the `/metrics` of `servioticy up`; 0: none", name="up_metrics_port"
    )
    broker_heap: Heap = setting("256m", "Java heap of the embedded broker")
    broker_flush: Literal["os", "always"] = setting(
        "os",
        "embedded broker; os: what is acknowledged survives kill -9 of everything, a power cut "
        "may take the last seconds; always: it is on the disk before it is acknowledged",
    )
    jars: str = setting(
        "", "folder of the downloaded jars (default: ~/.cache/servioticy/jars)", place=True
    )
    maven: Name = setting(
        "https://repo1.maven.org/maven2", "Maven repository the jars are downloaded from"
    )
    javascript: str = setting(
        "",
        "folder of the sandbox's downloaded parts (default: ~/.cache/servioticy/javascript)",
        place=True,
    )
    npm: Name = setting(
        "https://registry.npmjs.org", "npm registry the sandbox's parts are downloaded from"
    )

    @property
    def jars_path(self) -> Path:
        """The jar folder, absolute; shared by all checkouts of one user."""
        return _cached(self.jars, "jars")

    @property
    def javascript_path(self) -> Path:
        """The folder of the sandbox's downloaded parts, absolute; shared as the jars are."""
        return _cached(self.javascript, "javascript")


def _cached(chosen: str, name: str) -> Path:
    """Return the chosen folder, else the one of this name in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(chosen or f"{cache}/servioticy/{name}").expanduser().resolve()


@dataclass(frozen=True, slots=True)
class Monitoring:
    """What is measured by weaving."""

    PREFIX: ClassVar[str] = "monitoring_"

    aspects: str = setting(
        "",
        "TOML file that says what is woven where (default: `aspects.toml` in the data folder)",
        place=True,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """What every program needs, and a section for each part of the platform."""

    PREFIX: ClassVar[str] = ""

    data: Name = setting(
        "servioticy-data", "folder of the embedded Postgres, broker and logs", place=True
    )
    host: str = setting("127.0.0.1", "address the API and delivery listen on")
    metrics_host: str = setting("127.0.0.1", "address that `/metrics` is served at")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "INFO", "the least of our own events that is written"
    )
    forget_seconds: Seconds = setting(
        600.0,
        "what programs remember of devices and tenants of whom nothing has come for so long is "
        "forgotten, and read again when something comes",
    )

    store: Store = field(default_factory=Store)
    log: Log = field(default_factory=Log)
    kafka: Kafka = field(default_factory=Kafka)
    api: Api = field(default_factory=Api)
    requests: Requests = field(default_factory=Requests)
    tls: Tls = field(default_factory=Tls)
    delivery: Delivery = field(default_factory=Delivery)
    mqtt: Mqtt = field(default_factory=Mqtt)
    bridge: Bridge = field(default_factory=Bridge)
    pipeline: Pipeline = field(default_factory=Pipeline)
    limits: Limits = field(default_factory=Limits)
    spark: Spark = field(default_factory=Spark)
    sandbox: Sandbox = field(default_factory=Sandbox)
    functions: Functions = field(default_factory=Functions)
    operators: Operators = field(default_factory=Operators)
    usage: Usage = field(default_factory=Usage)
    identity: Identity = field(default_factory=Identity)
    embedded: Embedded = field(default_factory=Embedded)
    monitoring: Monitoring = field(default_factory=Monitoring)

    @property
    def data_path(self) -> Path:
        """The data folder, absolute."""
        return Path(self.data).expanduser().resolve()
