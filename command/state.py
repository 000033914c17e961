"""The state of the platform on a data folder, asked of it as it runs; nothing is opened for it."""

from __future__ import annotations

import http.client
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from command import asking, found, listening, shown
from servioticy import trust
from servioticy.embedded.folder import alive, read_run
from servioticy.errors import SettingsError
from servioticy.settings import Settings
from servioticy.settings.places import METRICS, metrics_ports, platform

TIMEOUT_SECONDS = 3.0
MAX_BODY = 1 << 20
LAG, WAITING = "servioticy_lag_records", "servioticy_put_off_records_waiting"
"""Metrics of the pipeline, not imported: Prometheus' library would come with them."""
PROCESS = re.compile(r"^servioticy_process_info\{([^}\n]*)\}", re.MULTILINE)
LABEL = re.compile(r'([a-z]+)="([^"]*)"')
BEGAN = re.compile(r"^process_start_time_seconds (\S+)$", re.MULTILINE)
SAMPLE = re.compile(rf'^({LAG}|{WAITING})\{{partition="(\d+)"\}} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Running:
    """A program; `since` is in seconds since 1970, None where it is not known."""

    name: str
    pid: int
    runs: bool
    since: float | None


@dataclass(frozen=True, slots=True)
class Health:
    """What a program says of itself: `lack` is empty where it is well."""

    name: str
    lack: str


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a program on this machine, by the port of its metrics; `since` as above."""

    name: str
    metrics_port: int
    since: float | None


@dataclass(frozen=True, slots=True)
class Partition:
    """Records of the log that are not behind stored progress, and those put off."""

    partition: int
    behind: int
    put_off: int


@dataclass(frozen=True, slots=True)
class State:
    """All that is told. `unknown`: why nothing is known of the partitions, else empty."""

    data: str
    programs: list[Running]
    health: list[Health]
    partitions: list[Partition]
    unknown: str
    processes: list[Process] = field(default_factory=list)

    @property
    def is_well(self) -> bool:
        """Whether every program runs and none of those that can be asked lacks anything."""
        return all(each.runs for each in self.programs) and not any(
            each.lack for each in self.health
        )


def of(settings: Settings) -> State:
    """Return the state. Raises SettingsError where nothing runs that could be asked."""
    facts = read_run(settings.data_path)
    if facts is None and not settings.store.dsn:
        raise SettingsError(
            f"no platform runs on {settings.data_path}: start it with `servioticy up`, or name "
            "its folder with --data"
        )
    here = found.of(settings)
    texts = {port: text for port, text in _metrics(here) if text}
    partitions, unknown = _partitions(here, texts)
    return State(
        str(settings.data_path),
        list(_programs(facts or {})),
        _health(here),
        partitions,
        unknown,
        _processes(here, texts),
    )


def lines(state: State, settings: Settings, now: float) -> list[str]:
    """Return the state as it is shown to people."""
    told = [f"platform on {shown.plain(state.data)}"]
    if state.programs:
        told += shown.columns([("program", "process", "since"), *map(_row(now), state.programs)])
    told += ["", "addresses, as the settings say"] if state.programs else []
    told += listening.shown(found.of(settings), []) if state.programs else []
    told += ["", "health"]
    told += [f"  {each.name:8} {each.lack or 'ok'}" for each in state.health]
    if state.processes:
        places = [(f"  {each.name}", str(each.metrics_port)) for each in state.processes]
        told += ["", *shown.columns([("processes", "metrics at"), *places], (1,))]
    told += ["", "partitions"]
    if state.unknown:
        return [*told, f"  not known: {state.unknown}"]
    rows = [(f"  {x.partition}", f"{x.behind:,}", f"{x.put_off:,}") for x in state.partitions]
    return [*told, *shown.columns([("  number", "behind", "put off"), *rows], (1, 2))]


def run(settings: Settings, as_json: bool) -> int:
    """Print the state; exit code 1 where something of it is not well."""
    state = of(settings)
    if as_json:
        shown.say_json({**asdict(state), "well": state.is_well})
    else:
        shown.say(lines(state, settings, time.time()))
    return 0 if state.is_well else 1


def _row(now: float) -> Any:
    def row(each: Running) -> tuple[str, str, str]:
        if not each.runs:
            return each.name, str(each.pid), "has ended; it is started again"
        if each.since is None:
            return each.name, str(each.pid), "not known"
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.since))
        return each.name, str(each.pid), f"{date} ({_span(now - each.since)})"

    return row


def _span(seconds: float) -> str:
    left = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if left >= 2 * size:
            return f"{left // size} {unit}"
    return f"{left} s"


def _programs(facts: Mapping[str, Any]) -> Iterator[Running]:
    for name, pid in facts.get("pids", {}).items():
        yield Running(name, pid, alive(pid), facts.get("since", {}).get(name))


def _health(settings: Settings) -> list[Health]:
    asked = (
        ("api", settings.api.port, "/private/health"),
        ("delivery", settings.delivery.port, "/health"),
    )
    believed = trust.own(settings)
    return [
        Health(name, _lack(*_get(settings.host, port, path, believed), port))
        for name, port, path in asked
    ]


def _lack(status: int, body: str, port: int) -> str:
    if status == http.client.OK:
        return ""
    if status == 0:
        return f"no answer at port {port}: {body}"
    return shown.plain(f"answers {status} at port {port}: {body.strip()[:300]}")


def _metrics(settings: Settings) -> Iterator[tuple[int, str]]:
    """Yield what is told at each port where a process may tell its metrics."""
    for program in METRICS:
        for port in metrics_ports(settings, program):
            status, body = _get(settings.metrics_host, port, "/metrics")
            yield port, body if status == http.client.OK else ""


def _processes(settings: Settings, texts: Mapping[int, str]) -> list[Process]:
    """Return the processes of this platform that tell which they are."""
    own, found = platform(settings), []
    for port, text in texts.items():
        labels, began = _which(text) or {}, BEGAN.search(text)
        if labels.get("platform") == own:
            since = float(began[1]) if began is not None else None
            found.append(Process(labels.get("program", ""), port, since))
    return found


def _which(text: str) -> dict[str, str] | None:
    """Return what a process says that it is; None: one of an earlier release does not."""
    found = PROCESS.search(text)
    return dict(LABEL.findall(found[1])) if found is not None else None


def _partitions(settings: Settings, texts: Mapping[int, str]) -> tuple[list[Partition], str]:
    """Return what the pipeline counts, or why it is not known."""
    ports = metrics_ports(settings, "pipeline")
    if not ports:
        return [], "the pipeline has no metrics (pipeline_metrics_port is 0)"
    own = platform(settings)
    told = []
    for port in (each for each in ports if each in texts):
        labels = _which(texts[port])
        if labels is None:
            is_ours = port == ports[0]
        else:
            is_ours = (labels.get("program"), labels.get("platform")) == ("pipeline", own)
        if is_ours:
            told.append(texts[port])
    if told:
        return samples("\n".join(told)), ""
    if ports[0] in texts:
        return [], f"port {ports[0]} is another program's"
    return [], f"the metrics of the pipeline do not answer at port {ports[0]}"


def samples(text: str) -> list[Partition]:
    """Return the partitions that metrics tell of, in order."""
    values = {
        (name, int(number)): int(float(value)) for name, number, value in SAMPLE.findall(text)
    }
    numbers = sorted({number for _, number in values})
    return [Partition(x, values.get((LAG, x), 0), values.get((WAITING, x), 0)) for x in numbers]


def _get(host: str, port: int, path: str, believed: ssl.SSLContext | str = "") -> tuple[int, str]:
    """Return status and body of an answer; 0 and why where there is none."""
    connection = asking.connection(host, port, TIMEOUT_SECONDS, believed)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_BODY).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error) or type(error).__name__
    finally:
        connection.close()
