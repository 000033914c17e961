"""Asks each program for its metrics, as Prometheus does; what does not answer is told, too."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from servioticy.settings import Settings
from servioticy.settings.places import METRICS, metrics_ports, platform, reachable

TIMEOUT_SECONDS = 1.0
MAX_BYTES = 4 << 20
MOST_PRESSING = 20
PROCESS = "servioticy_process_info"
AT = " at "
"""Between what a program is called and the port of one that is beside another."""
KEPT_SECONDS = 2.0
"""So long an answer is good for all who ask."""

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}\n]*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'([a-zA-Z_]+)="([^"\\]*)"')

Fetch = Callable[[str, int], str]
"""Returns what a host and port tell as metrics. Raises OSError."""


class Sample(NamedTuple):
    """A value, and the labels that tell which."""

    labels: Mapping[str, str]
    value: float


Samples = Mapping[str, list[Sample]]


class Programs:
    """The programs where the settings say that they tell their metrics."""

    def __init__(self, settings: Settings, fetch: Fetch | None = None) -> None:
        self._host = settings.metrics_host
        self._ports = {name: metrics_ports(settings, name) for name in METRICS}
        self._platform = platform(settings)
        self._fetch = fetch or fetched
        self._lock = threading.Lock()
        self._known: tuple[float, dict[str, Any]] | None = None

    def told(self) -> dict[str, Any]:
        """Return programs, partitions, who presses, the sandbox, and how computations ended."""
        with self._lock:
            if self._known is None or self._known[0] < time.monotonic() - KEPT_SECONDS:
                self._known = time.monotonic(), self._asked()
            return self._known[1]

    def _asked(self) -> dict[str, Any]:
        found: dict[str, Samples] = {}
        lacks: dict[str, str] = {}
        for name, ports in self._ports.items():
            here, lacks_first = self._processes(name, ports)
            found |= here
            if not here:
                lacks[name] = lacks_first
        return shown(found, lacks)

    def _processes(self, name: str, ports: Sequence[int]) -> tuple[dict[str, Samples], str]:
        """Return what each process of a program tells, by what it is called; and why the one at
        the program's own port tells nothing."""
        found: dict[str, Samples] = {}
        lack = "it has no port for metrics"
        for place, port in enumerate(ports):
            why = ""
            try:
                told = samples(self._fetch(self._host, port))
            except (OSError, http.client.HTTPException) as error:
                why = f"no answer at port {port}: {error or type(error).__name__}"
            else:
                # A process of the release before this one does not say which it is.
                if self._is_ours(told, name) or not (place or PROCESS in told):
                    found[f"{name}{AT}{port}" if place else name] = told
                    continue
                why = f"port {port} is another program's"
            lack = lack if place else why
        return found, lack

    def _is_ours(self, told: Samples, name: str) -> bool:
        return any(
            each.labels.get("program") == name and each.labels.get("platform") == self._platform
            for each in told.get(PROCESS, ())
        )


def fetched(host: str, port: int) -> str:
    """Return what a program tells at `/metrics`. Raises OSError, HTTPException."""
    connection = http.client.HTTPConnection(reachable(host), port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise http.client.HTTPException(f"it answers {answer.status}")
        return answer.read(MAX_BYTES).decode(errors="replace")
    finally:
        connection.close()


def samples(text: str) -> dict[str, list[Sample]]:
    """Return all that a text of metrics tells, by name."""
    found: dict[str, list[Sample]] = {}
    for name, labels, value in _SAMPLE.findall(text):
        found.setdefault(name, []).append(Sample(dict(_LABEL.findall(labels)), float(value)))
    return found


def shown(found: Mapping[str, Samples], lacks: Mapping[str, str]) -> dict[str, Any]:
    """Return what is told of the programs that answered, and of those that lack something."""
    up = _together(found, "up")
    ready = _by(up, "servioticy_program_up", "program")
    starts = _by(up, "servioticy_program_starts_total", "program")
    names = dict.fromkeys(
        (*(each for each in (*found, *lacks) if each.partition(AT)[0] != "up"), *ready)
    )
    pipeline = _together(found, "pipeline")
    behind = _by(pipeline, "servioticy_lag_records", "partition")
    put_off = _by(pipeline, "servioticy_put_off_records_waiting", "partition")
    return {
        "programs": [
            _program(name, found.get(name, {}), lacks.get(name), ready, starts) for name in names
        ],
        "partitions": [
            {
                "partition": int(number),
                "behind": int(behind.get(number, 0)),
                "putOff": int(put_off.get(number, 0)),
            }
            for number in sorted(behind.keys() | put_off.keys(), key=int)
        ],
        "pressing": _pressing(pipeline),
        "sandbox": {
            "workers": int(_sum(pipeline, "servioticy_sandbox_workers")),
            "frames": int(_sum(pipeline, "servioticy_sandbox_frames_total")),
            "kills": _counts(pipeline, "servioticy_sandbox_kills_total", "kind"),
        },
        "computations": _counts(pipeline, "servioticy_computations_total", "verdict"),
        "restingTenants": int(
            max(
                (
                    _sum(told, "servioticy_delivery_tenants_resting")
                    for name, told in found.items()
                    if name.partition(AT)[0] in ("delivery", "broker")
                ),
                default=0,
            )
        ),
    }


def _together(found: Mapping[str, Samples], program: str) -> Samples:
    """Return what all processes of a program tell."""
    together: dict[str, list[Sample]] = {}
    for name, told in found.items():
        if name.partition(AT)[0] == program:
            for metric, values in told.items():
                together.setdefault(metric, []).extend(values)
    return together


def _pressing(told: Samples) -> list[dict[str, Any]]:
    """Return the tenants that press most, by their numbers."""
    over = {
        (each.labels["partition"], each.labels["tenant"]): each.value
        for each in told.get("servioticy_tenant_over_share_seconds", ())
    }
    found = [
        {
            "tenant": int(each.labels["tenant"]),
            "partition": int(each.labels["partition"]),
            "putOff": int(each.value),
            "overSeconds": over.get((each.labels["partition"], each.labels["tenant"]), 0.0),
        }
        for each in told.get("servioticy_tenant_put_off_records", ())
    ]
    found.sort(key=lambda each: (-each["putOff"], -each["overSeconds"], each["partition"]))
    return found[:MOST_PRESSING]


def _program(
    name: str,
    told: Samples,
    lack: str | None,
    ready: Mapping[str, float],
    starts: Mapping[str, float],
) -> dict[str, Any]:
    program: dict[str, Any] = {"name": name}
    if name in ready:
        program["ready"] = ready[name] == 1
    if name in starts:
        program["starts"] = int(starts[name])
    if lack is not None:
        program["lack"] = lack
    for key, metric, factor in (
        ("memoryBytes", "process_resident_memory_bytes", 1),
        ("processorSeconds", "process_cpu_seconds_total", 1),
        ("since", "process_start_time_seconds", 1000),
    ):
        if metric in told:
            value = _sum(told, metric) * factor
            program[key] = value if key == "processorSeconds" else int(value)
    return program


def _by(told: Samples, metric: str, label: str) -> dict[str, float]:
    return {
        each.labels[label]: each.value for each in told.get(metric, ()) if label in each.labels
    }


def _counts(told: Samples, metric: str, label: str) -> dict[str, int]:
    return {name: int(value) for name, value in sorted(_by(told, metric, label).items()) if value}


def _sum(told: Samples, metric: str) -> float:
    return sum(each.value for each in told.get(metric, ()))
