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
    api_threads: int = _setting(32, "requests one API process works on at once")
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
        20_000, "computations that one update may cause; more get a verdict"
    )
    head_cache_streams: int = _setting(200_000, "last updates kept in memory per partition")
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
