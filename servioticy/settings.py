"""Settings: one typed object, read once, each field with a line of documentation.

Read from the environment (`SERVIOTICY_DSN`, ...), then from the TOML file named by
`SERVIOTICY_CONFIG` (lower case keys, no prefix), then the defaults below. The
environment wins. Safe by default: loopback only, and no secret has a default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from servioticy.errors import SettingsError

PREFIX = "SERVIOTICY_"


def _setting(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of every program."""

    data: str = _setting("servioticy-data", "folder of the embedded Postgres, broker and logs")
    dsn: str = _setting("", "Postgres to use instead of the embedded one (libpq DSN or URL)")
    bootstrap_servers: str = _setting("", "Kafka to use instead of the embedded broker")
    host: str = _setting("127.0.0.1", "address the API and delivery listen on")
    api_port: int = _setting(8080, "port of the REST API")
    live_port: int = _setting(8081, "port of the WebSocket delivery")
    api_workers: int = _setting(1, "processes of the REST API")
    live_sockets: int = _setting(10_000, "WebSockets one delivery process holds open")
    live_sockets_per_tenant: int = _setting(1_000, "of those, how many one tenant may have")
    live_backlog_bytes: int = _setting(
        268_435_456, "bytes one delivery process keeps for sockets that have not taken them yet"
    )
    api_update_threads: int = _setting(32, "updates one API process works on at once")
    api_read_threads: int = _setting(16, "reads one API process works on at once")
    api_change_threads: int = _setting(
        8, "creations, changes and deletions one API process works on at once"
    )
    api_share: float = _setting(0.75, "part of each kind of these threads one tenant may hold")
    api_queue: int = _setting(2_000, "requests that wait for a thread of one kind; more get 503")
    api_queue_of_one: int = _setting(200, "of these, requests of one tenant; more get 429")
    api_queue_seconds: float = _setting(30.0, "how long a request waits for a thread, then 503")
    api_waiting_reads: int = _setting(
        2_000, "reads that wait for the pipeline in one API process; more get 503"
    )
    api_waiting_reads_of_one: int = _setting(200, "of these, reads of one tenant; more get 429")
    api_connections: int = _setting(
        15_000, "connections to one API process; then the longest silent one is closed"
    )
    tenant_bytes_per_second: int = _setting(
        8_388_608, "bytes of updates of one tenant that an API process takes a second; then 429"
    )
    api_idle_seconds: float = _setting(
        60.0, "how long a connection may be without a whole request head before it is closed"
    )
    api_body_seconds: float = _setting(30.0, "how long a request's body may take, then 408")
    api_send_seconds: float = _setting(
        30.0, "how long a client may take nothing of its answer before it is cut off"
    )
    api_held_bytes: int = _setting(
        268_435_456,
        "bytes that clients have sent, or not taken yet, and one API process holds; a tenant a "
        "quarter of them",
    )
    public_url: str = _setting(
        "", "URL clients reach the API by, for Location (empty: http, host and api_port)"
    )
    change_wait_seconds: float = _setting(
        10.0, "how long a change waits for the one before it, then 503"
    )
    partitions: int = _setting(1, "partitions of the topics, fixed when they are created")
    topic_prefix: str = _setting("", "put before every topic's name, to share a broker")
    max_body_bytes: int = _setting(1_048_576, "largest request body accepted, in bytes")
    accept_timeout_seconds: float = _setting(
        10.0, "how long the API waits for the broker before it answers 503"
    )
    read_wait_seconds: float = _setting(
        1.0, "how long a read waits for the pipeline to store what was accepted before it"
    )
    max_future_seconds: float = _setting(
        86_400.0, "how far ahead of our clock a timestamp may be (seconds or ms, by its size)"
    )
    batch_seconds: int = _setting(300, "length of one Spark real-time batch, in seconds")
    max_batch_updates: int = _setting(1000, "most updates stored in one transaction")
    max_hops: int = _setting(100, "how many composites deep one update may go")
    max_computations: int = _setting(
        10_000, "computations of one tenant that one update may cause; more get a verdict"
    )
    max_tree_bytes: int = _setting(
        8_388_608, "bytes of one tenant's outputs from one update; what follows gets a verdict"
    )
    max_tree_script_ms: int = _setting(
        500, "time of one tenant's scripts for one update, in ms; what follows gets a verdict"
    )
    foreign_part: float = _setting(
        0.1, "part of these three that a tenant has in what follows from another's update"
    )
    tenant_share: float = _setting(
        0.5, "part of a partition's time that one tenant may use while others are active"
    )
    max_put_off: int = _setting(
        100_000, "updates of a tenant over its share that wait in a partition; more get 429"
    )
    head_cache_bytes: int = _setting(
        268_435_456, "last updates kept in memory per partition, in bytes"
    )
    script_budget_ms: int = _setting(100, "wall budget of one call into the sandbox, in ms")
    script_budget_ms_per_update: float = _setting(1.0, "added to the budget per update, in ms")
    sandbox_workers: int = _setting(64, "most sandbox processes alive per partition")
    sandbox_protection: str = _setting(
        "required",
        "required: run no script without seccomp, or as root; any: with what the machine allows",
    )
    sandbox_engine: str = _setting("v8", "v8, or quickjs: slower, for a day without a safe V8")
    pipeline_heap: str = _setting("768m", "Java heap of the pipeline's Spark driver")
    broker_heap: str = _setting("256m", "Java heap of the embedded broker")
    broker_flush: str = _setting(
        "os",
        "embedded broker; os: what is acknowledged survives kill -9 of everything, a power cut "
        "may take the last seconds; always: it is on the disk before it is acknowledged",
    )
    jars: str = _setting("", "folder of the downloaded jars (default: ~/.cache/servioticy/jars)")
    maven: str = _setting(
        "https://repo1.maven.org/maven2", "Maven repository the jars are downloaded from"
    )
    log_level: str = _setting("INFO", "DEBUG, INFO, WARNING or ERROR")

    @property
    def data_path(self) -> Path:
        """The data folder, absolute."""
        return Path(self.data).expanduser().resolve()

    @property
    def jars_path(self) -> Path:
        """The jar folder, absolute; shared by all checkouts of one user."""
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return Path(self.jars or f"{cache}/servioticy/jars").expanduser().resolve()


def load(
    environment: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Read the settings; `overrides` (the command line) win over everything.

    Raises SettingsError naming the setting, its value and what was expected.
    """
    environment = os.environ if environment is None else environment
    values = {**_file(environment), **_environment(environment), **dict(overrides or {})}
    names = {each.name: each for each in fields(Settings)}
    for name in values:
        if name not in names:
            raise SettingsError(f"unknown setting {name!r}; known: {', '.join(sorted(names))}")
    return Settings(**{name: _typed(name, value) for name, value in values.items()})


def to_environment(settings: Settings) -> dict[str, str]:
    """The settings as environment variables, to hand to a child program."""
    return {
        PREFIX + each.name.upper(): str(getattr(settings, each.name)) for each in fields(Settings)
    }


def _file(environment: Mapping[str, str]) -> dict[str, Any]:
    name = environment.get(PREFIX + "CONFIG")
    if not name:
        return {}
    try:
        return tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"cannot read the settings file {name}: {error}") from error


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    known = {each.name for each in fields(Settings)}
    return {
        name: value
        for key, value in environment.items()
        if key.startswith(PREFIX) and (name := key[len(PREFIX) :].lower()) in known
    }


def _typed(name: str, value: Any) -> Any:
    wanted: type[Any] = type(next(each.default for each in fields(Settings) if each.name == name))
    try:
        return wanted(value)
    except (TypeError, ValueError) as error:
        raise SettingsError(
            f"setting {name} = {value!r} is not of type {wanted.__name__}"
        ) from error
