"""Every setting of every program, by section: its bounds, its default, what it is.

A setting's name is the section's prefix and the field's name, unless the field gives
another; it is unique. Safe by default: loopback only, and no secret has a default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

Port = Annotated[int, Meta(ge=1, le=65_535)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Number = Annotated[int, Meta(ge=1, le=1_000_000_000)]
MetricsPort = Annotated[int, Meta(ge=0, le=65_535)]
Bytes = Annotated[int, Meta(ge=1, le=1 << 40)]
Milliseconds = Annotated[int, Meta(ge=1, le=600_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Wait = Annotated[float, Meta(ge=0, le=86_400)]
Price = Annotated[float, Meta(ge=0, le=1e9)]
Part = Annotated[float, Meta(gt=0, le=1)]
Heap = Annotated[str, Meta(pattern=r"^[1-9]\d{0,6}[kmgKMG]$", description="a size such as 512m")]
Name = Annotated[str, Meta(min_length=1, max_length=4_096)]
Prefix = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9._-]{0,100}$", description="at most 100 of A-Z a-z 0-9 . _ -"),
]
Address = Annotated[
    str, Meta(pattern=r"^(https?://\S+)?$", description="empty, or a URL that begins with http")
]
BrokerUrl = Annotated[
    str,
    Meta(
        pattern=r"^(mqtts?://[^\s/?#@]+)?$",
        description="empty, or mqtt://HOST:PORT or mqtts://HOST:PORT, nothing more",
    ),
]
BridgeTenants = Annotated[
    Mapping[
        Annotated[str, Meta(pattern=r"^([A-Za-z0-9_-]{1,50}(/[A-Za-z0-9_-]{1,50}){0,3})?$")],
        Annotated[str, Meta(min_length=1, max_length=4_096)],
    ],
    Meta(
        max_length=100,
        description="a table of tokens by topic prefix; in the environment a JSON object",
    ),
]
SparkConf = Annotated[
    Mapping[Annotated[str, Meta(pattern=r"^spark\.\S+$")], str],
    Meta(description="a table of texts named spark.*; in the environment a JSON object"),
]


def setting(default: Any, doc: str, *, name: str = "", secret: bool = False) -> Any:
    """Return a field that is a setting.

    A `secret` is never shown, neither in errors nor by repr.
    """
    about = {"doc": doc, "name": name, "secret": secret}
    if isinstance(default, dict):
        return field(default_factory=default.copy, hash=False, repr=not secret, metadata=about)
    return field(default=default, repr=not secret, metadata=about)


@dataclass(frozen=True, slots=True)
class Store:
    """Postgres."""

    PREFIX: ClassVar[str] = ""

    dsn: str = setting(
        "", "Postgres to use instead of the embedded one (libpq DSN or URL)", secret=True
    )


@dataclass(frozen=True, slots=True)
class Log:
    """Kafka."""

    PREFIX: ClassVar[str] = ""

    bootstrap_servers: str = setting("", "Kafka to use instead of the embedded broker")
    partitions: Annotated[int, Meta(ge=1, le=10_000)] = setting(
        1, "partitions of the topics, fixed when they are created"
    )
    topic_prefix: Prefix = setting("", "put before every topic's name, to share a broker")
    log_retention_days: Annotated[int, Meta(ge=1, le=36_500)] = setting(
        30, "how long the broker keeps updates at least: who is away for longer misses some"
    )
    accept_timeout_seconds: Seconds = setting(
        10.0, "how long the API waits for the broker before it answers 503"
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
        "", "PEM file of the authorities that vouch for the brokers (empty: those of the machine)"
    )
    ssl_certificate: str = setting("", "PEM file of our certificate and its chain, for mutual TLS")
    ssl_key: str = setting("", "PEM file of its key (PKCS #8)")
    ssl_key_password: str = setting("", "password of the key", secret=True)
    ssl_check_host: bool = setting(True, "whether a broker's certificate has to name its host")


@dataclass(frozen=True, slots=True)
class Api:
    """How the REST API serves."""

    PREFIX: ClassVar[str] = "api_"

    port: Port = setting(8080, "port of the REST API")
    metrics_port: MetricsPort = setting(9401, "port of the API's `/metrics`; 0: none")
    workers: Annotated[int, Meta(ge=1, le=1_000)] = setting(1, "processes of the REST API")
    update_threads: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        32, "updates one API process works on at once"
    )
    batch_threads: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        4, "batches of updates one API process works on at once"
    )
    read_threads: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        16, "reads one API process works on at once"
    )
    change_threads: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        8, "creations, changes and deletions one API process works on at once"
    )
    claim_threads: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        2, "claims of devices without a token one API process works on at once"
    )
    claim_queue: Count = setting(400, "claims that wait for a thread; more get 503")
    share: Part = setting(0.75, "part of each kind of these threads one tenant may hold")
    queue: Count = setting(2_000, "requests that wait for a thread of one kind; more get 503")
    queue_of_one: Count = setting(200, "of these, requests of one tenant; more get 429")
    queue_seconds: Seconds = setting(30.0, "how long a request waits for a thread, then 503")
    waiting_reads: Count = setting(
        2_000, "reads that wait for the pipeline in one API process; more get 503"
    )
    waiting_reads_of_one: Count = setting(200, "of these, reads of one tenant; more get 429")
    connections: Count = setting(
        15_000, "connections to one API process; then the longest silent one is closed"
    )
    idle_seconds: Seconds = setting(
        60.0, "how long a connection may be without a whole request head before it is closed"
    )
    body_seconds: Seconds = setting(30.0, "how long a request's body may take, then 408")
    send_seconds: Seconds = setting(
        30.0, "how long a client may take nothing of its answer before it is cut off"
    )
    held_bytes: Bytes = setting(
        268_435_456,
        "bytes that clients have sent, or not taken yet, and one API process holds; a tenant a "
        "quarter of them",
    )


@dataclass(frozen=True, slots=True)
class Requests:
    """What a request to the REST API may ask, and how it is answered."""

    PREFIX: ClassVar[str] = ""

    public_url: Address = setting(
        "", "URL clients reach the API by, for Location (empty: http, host and api_port)"
    )
    max_body_bytes: Bytes = setting(1_048_576, "largest request body accepted, in bytes")
    max_future_seconds: Annotated[float, Meta(ge=0, le=1e10)] = setting(
        86_400.0, "how far ahead of our clock a timestamp may be (seconds or ms, by its size)"
    )
    tenant_bytes_per_second: Bytes = setting(
        8_388_608, "bytes of updates of one tenant that an API process takes a second; then 429"
    )
    max_put_off: Number = setting(
        100_000, "updates of a tenant over its share that wait in a partition; more get 429"
    )
    read_wait_seconds: Wait = setting(
        1.0, "how long a read waits for the pipeline to store what was accepted before it"
    )
    change_wait_seconds: Wait = setting(
        10.0, "how long a change waits for the one before it, then 503"
    )
    audit_days: Annotated[int, Meta(ge=1, le=36_500)] = setting(
        365, "how long the audit log keeps an entry; the newest 100,000 of a tenant at most"
    )


@dataclass(frozen=True, slots=True)
class Delivery:
    """The WebSocket delivery."""

    PREFIX: ClassVar[str] = "live_"

    port: Port = setting(8081, "port of the WebSocket delivery")
    metrics_port: MetricsPort = setting(9402, "port of the delivery's `/metrics`; 0: none")
    sockets: Count = setting(10_000, "WebSockets one delivery process holds open")
    sockets_per_tenant: Count = setting(1_000, "of those, how many one tenant may have")
    backlog_bytes: Bytes = setting(
        268_435_456, "bytes one delivery process keeps for clients that have not taken them yet"
    )
    callback_networks: str = setting(
        "",
        "networks callbacks may reach beside public ones, as 10.1.0.0/16 ::1/128",
    )


@dataclass(frozen=True, slots=True)
class Mqtt:
    """MQTT and STOMP, which delivery serves."""

    PREFIX: ClassVar[str] = "mqtt_"

    port: MetricsPort = setting(
        1883, "port of MQTT, STOMP, and both over WebSocket, where it is free; 0: none"
    )
    api_url: Address = setting(
        "", "REST API that what clients publish goes to (empty: http, host and api_port)"
    )


@dataclass(frozen=True, slots=True)
class Bridge:
    """An MQTT broker of one's own, to which delivery connects."""

    PREFIX: ClassVar[str] = "bridge_"

    url: BrokerUrl = setting("", "MQTT broker of your own, beside the embedded one (empty: none)")
    user: str = setting("", "who we are there")
    password: str = setting("", "our password there", secret=True)
    ca: str = setting(
        "", "PEM file of the authorities that vouch for the broker (empty: those of the machine)"
    )
    certificate: str = setting("", "PEM file of our certificate and its chain, for mutual TLS")
    key: str = setting("", "PEM file of its key, not encrypted")
    tenants: BridgeTenants = setting(
        {}, "whose the topics below a prefix are: a token of the tenant", secret=True
    )
    client_id: Annotated[
        str,
        Meta(pattern=r"^[A-Za-z0-9_-]{1,50}$", description="1 to 50 of A-Z a-z 0-9 _ -"),
    ] = setting("servioticy", "name of our connections there; with a prefix it follows")
    qos: Annotated[int, Meta(ge=0, le=1)] = setting(
        1, "quality of service both ways; 0: what is on its way may be lost"
    )
    session_seconds: Annotated[int, Meta(ge=0, le=31_536_000)] = setting(
        604_800, "how long the broker is asked to keep what comes while we are away"
    )


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
    foreign_part: Part = setting(
        0.1, "part of these three that a tenant has in what follows from another's update"
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
    java_options: str = setting(
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData", "options of the driver's Java"
    )
    conf: SparkConf = setting(
        {},
        "any configuration of Spark; wins over ours. Not for secrets: the list of processes "
        "shows it",
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
        100, "wall budget of one frame into the sandbox, in ms", name="script_budget_ms"
    )
    budget_ms_per_update: Annotated[float, Meta(ge=0, le=10_000)] = setting(
        1.0,
        "added to the budget for each computation that the frame may hold, in ms",
        name="script_budget_ms_per_update",
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
    jars: str = setting("", "folder of the downloaded jars (default: ~/.cache/servioticy/jars)")
    maven: Name = setting(
        "https://repo1.maven.org/maven2", "Maven repository the jars are downloaded from"
    )
    javascript: str = setting(
        "", "folder of the sandbox's downloaded parts (default: ~/.cache/servioticy/javascript)"
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
class Usage:
    """What tenants are told that they have used, and what it costs."""

    PREFIX: ClassVar[str] = "usage_"

    days: Annotated[int, Meta(ge=1, le=3_660)] = setting(
        35, "days that what tenants have used is kept by the hour"
    )
    per_million_updates: Price = setting(0.0, "price of a million updates accepted and computed")
    per_million_computations: Price = setting(0.0, "price of a million computations")
    per_processor_hour: Price = setting(0.04, "price of an hour of scripts' processor time")
    per_gigabyte: Price = setting(0.1, "price of 10^9 bytes of updates stored")
    per_million_deliveries: Price = setting(0.0, "price of a million updates given to subscribers")


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose tokens are accepted beside the platform's own (OpenID Connect)."""

    PREFIX: ClassVar[str] = "oidc_"

    issuers: str = setting("", "issuers of tokens that are accepted, as https://login.example.org")
    audience: str = setting("", "what `aud` of their tokens has to name: this platform")
    tenant_claim: str = setting("", "claim of their tokens that names the tenant, or several")
    default_tenant: str = setting("", "tenant of persons whose request names none")
    token_types: str = setting(
        "at+jwt", "what `typ` of their tokens may be; `at+jwt JWT` where the issuer cannot but JWT"
    )
    leeway_seconds: Annotated[float, Meta(ge=0, le=600)] = setting(
        30.0, "how far an issuer's clock and ours may be apart"
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """What every program needs, and a section for each part of the platform."""

    PREFIX: ClassVar[str] = ""

    data: Name = setting("servioticy-data", "folder of the embedded Postgres, broker and logs")
    host: str = setting("127.0.0.1", "address the API and delivery listen on")
    metrics_host: str = setting("127.0.0.1", "address that `/metrics` is served at")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "INFO", "the least of our own events that is written"
    )

    store: Store = field(default_factory=Store)
    log: Log = field(default_factory=Log)
    kafka: Kafka = field(default_factory=Kafka)
    api: Api = field(default_factory=Api)
    requests: Requests = field(default_factory=Requests)
    delivery: Delivery = field(default_factory=Delivery)
    mqtt: Mqtt = field(default_factory=Mqtt)
    bridge: Bridge = field(default_factory=Bridge)
    pipeline: Pipeline = field(default_factory=Pipeline)
    limits: Limits = field(default_factory=Limits)
    spark: Spark = field(default_factory=Spark)
    sandbox: Sandbox = field(default_factory=Sandbox)
    usage: Usage = field(default_factory=Usage)
    identity: Identity = field(default_factory=Identity)
    embedded: Embedded = field(default_factory=Embedded)

    @property
    def data_path(self) -> Path:
        """The data folder, absolute."""
        return Path(self.data).expanduser().resolve()
