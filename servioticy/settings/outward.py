"""Settings of what the platform shows to others: the API, delivery, who asks and who pays.

`sections.py` has the other sections, and all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from servioticy.settings.kinds import (
    Address,
    BridgeTenants,
    BrokerUrl,
    Bytes,
    Count,
    MetricsPort,
    Number,
    Part,
    Port,
    Price,
    Seconds,
    Stores,
    Wait,
    setting,
)


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
        4, "batches of updates, and updates of 16 KiB and more, one API process works on at once"
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
        100_000, "updates of a tenant that have been put off and wait in a partition; more get 429"
    )
    console_hours: Annotated[float, Meta(gt=0, le=720)] = setting(
        12.0, "how long a session of the console is good; it ends with its token as well"
    )
    operator_tenant: str = setting(
        "", "tenant whose admins see the state of the whole platform (empty: nobody does)"
    )
    read_wait_seconds: Wait = setting(
        1.0, "how long a read waits for the pipeline to store what was accepted before it"
    )
    change_wait_seconds: Wait = setting(
        10.0, "how long a change waits for the one before it, then 503"
    )
    audit_days: Annotated[int, Meta(ge=1, le=36_500)] = setting(
        365, "how long the audit log keeps an entry; of each kind so many at most (docs/limits.md)"
    )


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates: what clients are shown by the API, delivery and the broker."""

    PREFIX: ClassVar[str] = "tls_"

    certificate: str = setting(
        "",
        "PEM file of our certificate and its chain: the API and delivery then speak TLS alone "
        "(empty: plain text); read anew when it changes",
        place=True,
    )
    key: str = setting("", "PEM file of its key", place=True)
    key_password: str = setting("", "password of the key", secret=True)
    ca: str = setting(
        "",
        "PEM file of the authorities that vouch for the API where `servioticy` or `mqtt_api_url` "
        "ask it by https (empty: those of the machine)",
        place=True,
    )


@dataclass(frozen=True, slots=True)
class Delivery:
    """The WebSocket delivery."""

    PREFIX: ClassVar[str] = "live_"

    port: Port = setting(8081, "port of the WebSocket delivery")
    public_url: Address = setting(
        "",
        "URL pages of the console reach sockets by, http or https, of the same host as public_url "
        "(empty: that of public_url, with live_port)",
    )
    peer_url: Address = setting(
        "",
        "URL by which other processes of delivery reach this one (empty: its host, or the name of "
        "its machine where it listens on all addresses, with live_port)",
    )
    metrics_port: MetricsPort = setting(9402, "port of the delivery's `/metrics`; 0: none")
    sockets: Count = setting(10_000, "WebSockets one delivery process holds open")
    sockets_per_tenant: Count = setting(
        1_000,
        "connections one tenant may have, at all processes of delivery and the broker together",
    )
    backlog_bytes: Bytes = setting(
        268_435_456, "bytes one delivery process keeps for clients that have not taken them yet"
    )
    callback_networks: str = setting(
        "",
        "networks callbacks may reach beside public ones, as 10.1.0.0/16 ::1/128, or none; empty: "
        "none, and with servioticy up on loopback this machine",
    )


@dataclass(frozen=True, slots=True)
class Mqtt:
    """MQTT and STOMP."""

    PREFIX: ClassVar[str] = "mqtt_"

    port: MetricsPort = setting(
        1883, "port of MQTT, STOMP, and both over WebSocket, where it is free; 0: none"
    )
    tls_port: MetricsPort = setting(
        0, "port of the same by TLS, mostly 8883; it needs `tls_certificate`; 0: none"
    )
    client_ca: str = setting(
        "",
        "PEM file of the authorities that vouch for clients of `mqtt_tls_port`, who then need a "
        "certificate beside their token (empty: they need none)",
        place=True,
    )
    api_url: Address = setting(
        "", "REST API for what clients ask it by messages (empty: http, host and api_port)"
    )
    peer_url: BrokerUrl = setting(
        "",
        "URL by which other processes of the broker reach this one (empty: its host, or the name "
        "of its machine where it listens on all addresses, with mqtt_port, or mqtt_tls_port)",
    )
    metrics_port: MetricsPort = setting(9404, "port of the broker's `/metrics`; 0: none")
    clients: Count = setting(10_000, "MQTT and STOMP clients one broker process holds open")


@dataclass(frozen=True, slots=True)
class Bridge:
    """An MQTT broker of one's own, to which the broker connects."""

    PREFIX: ClassVar[str] = "bridge_"

    url: BrokerUrl = setting("", "MQTT broker of your own, beside the embedded one (empty: none)")
    user: str = setting("", "who we are there")
    password: str = setting("", "our password there", secret=True)
    ca: str = setting(
        "",
        "PEM file of the authorities that vouch for the broker (empty: those of the machine)",
        place=True,
    )
    certificate: str = setting(
        "", "PEM file of our certificate and its chain, for mutual TLS", place=True
    )
    key: str = setting("", "PEM file of its key, not encrypted", place=True)
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
class Functions:
    """Workflows: what works on atoms."""

    PREFIX: ClassVar[str] = "functions_"

    metrics_port: MetricsPort = setting(9405, "port of the `/metrics` of functions; 0: none")
    instances: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        8, "instances of procedures and sinks that one machine runs at once"
    )
    instances_per_tenant: Annotated[int, Meta(ge=1, le=1_000)] = setting(
        4, "instances of one tenant, on all machines together"
    )
    lifetime_seconds: Annotated[float, Meta(ge=1, le=3_600)] = setting(
        60.0, "how long an instance lives at most; then it gives back what it holds"
    )
    visibility_seconds: Annotated[float, Meta(ge=2, le=7_200)] = setting(
        90.0,
        "how long an atom that was taken is shown to nobody else: ten seconds more than an "
        "instance lives, at least",
    )
    stores: Stores = setting(
        {},
        "folders and buckets that workflows may read, each a URL by its name (docs/functions.md); "
        "none unless you say so",
        secret=True,
    )
    databases: Stores = setting(
        {},
        "databases that workflows may write rows of tables into, each a URL by its name "
        "(docs/functions.md); none unless you say so",
        secret=True,
    )
    idle_seconds: Annotated[float, Meta(ge=0, le=86_400)] = setting(
        30.0, "after how long without work the process that works on atoms ends"
    )
    spare: bool = setting(
        True,
        "whether the next process that works is loaded beforehand, for nobody yet: the first atom "
        "after idleness does not wait for its start",
    )


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
    per_gibibyte_hour: Price = setting(
        0.0045,
        "price of an hour of 1,024 MiB of memory that a procedure of a workflow may have, for as "
        "long as it works",
    )
    per_gigabyte: Price = setting(0.1, "price of 10^9 bytes of updates stored")
    per_million_atoms: Price = setting(
        0.0, "price of a million atoms that a step of a workflow has finished"
    )
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
    client: str = setting(
        "",
        "our client at the first of `oidc_issuers`, by which persons sign in to the console "
        "(empty: they show a token)",
    )
    client_secret: str = setting(
        "", "its secret (empty: it has none, and is known by PKCE)", secret=True
    )
    scope: str = setting(
        "openid",
        "what the console asks for them; `openid offline_access` where that is what lets a "
        "session go on when a token ends",
    )
    parameters: str = setting(
        "",
        "what the issuer is asked with beside, as resource=https://iot.example.org, or "
        "audience=..., where tokens are for this platform only then",
    )
