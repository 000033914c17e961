"""What `servioticy status` and `usage` tell, to people and to programs."""

from __future__ import annotations

import http.server
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import cli, shown, state
from command.remote import status, usage
from command.state import Health, Partition, Running, State
from servioticy.embedded import tcp_ports
from servioticy.metrics.names import LAG, PUT_OFF_WAITING
from servioticy.settings import changed, load
from servioticy.settings.places import platform

ID = "1423072260000" + "0" * 32
NOW = 1_800_000_000.0
GONE = 2**22 + 1
"""No process has this number: it is beyond the largest."""
METRICS = """\
# HELP servioticy_lag_records records
# TYPE servioticy_lag_records gauge
servioticy_lag_records{partition="10"} 7.0
servioticy_lag_records{partition="2"} 1.2e+06
servioticy_put_off_records_waiting{partition="2"} 3.0
servioticy_put_off_records_total{partition="2"} 99.0
servioticy_loop_lag_seconds{partition="4"} 1.0
"""


def test_metrics_are_called_as_the_pipeline_calls_them() -> None:
    assert (LAG.name, PUT_OFF_WAITING.name) == (state.LAG, state.WAITING)


def test_partitions_are_told_in_order() -> None:
    assert state.samples(METRICS) == [Partition(2, 1_200_000, 3), Partition(10, 7, 0)]


def test_the_state_of_a_platform_for_people() -> None:
    told = State(
        "data",
        [Running("api", 41, True, NOW - 7300), Running("pipeline", 42, False, NOW)],
        [Health("api", ""), Health("delivery", "no answer at port 2: refused")],
        [Partition(0, 12_000, 5)],
        "",
    )
    text = "\n".join(state.lines(told, load(environment={}), NOW))

    assert not told.is_well
    assert "(2 h)" in text
    assert "pipeline  42       has ended; it is started again" in text
    assert "  api      ok\n  delivery no answer at port 2: refused" in text
    assert "12,000        5" in text


def test_a_platform_is_well_where_all_run_and_lack_nothing() -> None:
    assert State("", [Running("api", 1, True, None)], [Health("api", "")], [], "no").is_well


class _Program(http.server.BaseHTTPRequestHandler):
    """API, delivery and the pipeline's metrics at once, as it is told to be."""

    status = 200

    def do_GET(self) -> None:
        metrics = self.path == "/metrics"
        body = (METRICS if metrics else '{"message": "Postgres does not answer"}').encode()
        self.send_response(200 if metrics else self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data folder of a platform whose pipeline has ended just now."""
    monkeypatch.delenv("SERVIOTICY_DSN", raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Program) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        names = ("api_port", "live_port", "pipeline_metrics_port")
        facts: dict[str, Any] = dict.fromkeys(names, server.server_port)
        facts |= {"host": "127.0.0.1", "metrics_host": "127.0.0.1", "dsn": "secret"}
        facts |= {"pid": os.getpid(), "since": {"api": NOW}}
        facts |= {"pids": {"api": os.getpid(), "pipeline": GONE}}
        (tmp_path / "run.json").write_text(json.dumps(facts))
        yield tmp_path
        server.shutdown()


def test_a_platform_is_asked_by_its_data_folder(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is not well is told by the exit code, too."""
    monkeypatch.setattr(_Program, "status", 503)
    assert cli.main(["status", "--json", "--data", str(data)]) == 1

    told = capsys.readouterr().out
    found = json.loads(told)
    assert [(each["name"], each["runs"]) for each in found["programs"]] == [
        ("api", True),
        ("pipeline", False),
    ]
    assert found["partitions"][0] == {"partition": 2, "behind": 1_200_000, "put_off": 3}
    assert not found["well"]
    assert all("Postgres does not answer" in each["lack"] for each in found["health"])
    assert "secret" not in told


def test_processes_are_told_by_where_their_metrics_are(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of several of one program, as they run one by one; and of no other platform."""
    facts = json.loads((data / "run.json").read_text()) | {"bootstrap_servers": "here:1"}
    (data / "run.json").write_text(json.dumps(facts))
    ours = platform(changed(load(environment={}), bootstrap_servers="here:1"))

    def told(_host: str, port: int, path: str, *_: object) -> tuple[int, str]:
        which = {9402: (ours, "delivery"), 9502: (ours, "delivery"), 9504: ("0badcafe", "broker")}
        if path != "/metrics" or port not in which:
            return 0, "refused"
        info = 'servioticy_process_info{platform="%s",program="%s",release="1"} 1.0\n'
        return 200, info % which[port] + f"process_start_time_seconds {NOW}\n"

    monkeypatch.setattr(state, "_get", told)
    assert cli.main(["status", "--json", "--data", str(data)]) == 1
    found = json.loads(capsys.readouterr().out)["processes"]
    assert found == [
        {"name": "delivery", "metrics_port": 9402, "since": NOW},
        {"name": "delivery", "metrics_port": 9502, "since": NOW},
    ]
    cli.main(["status", "--data", str(data)])
    assert re.search(r"(?m)^  delivery +9502$", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("which", "partitions", "unknown"),
    [
        ({9400: "ours", 9500: "ours", 9600: "others", 9700: "", 9800: "broker"}, [0, 1], ""),
        ({9400: "", 9500: "ours"}, [0, 1], ""),
        ({9400: "others", 9500: "ours"}, [1], ""),
        ({9400: "others"}, [], "port 9400 is another program's"),
    ],
    ids=["all", "of an earlier release", "beside another's", "another's alone"],
)
def test_partitions_are_those_of_this_platform_alone(
    which: dict[int, str],
    partitions: list[int],
    unknown: str,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The ports beside the pipeline's may be those of another platform on this machine."""
    facts = json.loads((data / "run.json").read_text())
    facts |= {"bootstrap_servers": "here:1", "pipeline_metrics_port": 9400}
    (data / "run.json").write_text(json.dumps(facts))
    ours = platform(changed(load(environment={}), bootstrap_servers="here:1"))
    labels = {"ours": (ours, "pipeline"), "others": ("0badcafe", "pipeline")}
    labels |= {"broker": (ours, "broker")}

    def told(_host: str, port: int, path: str, *_: object) -> tuple[int, str]:
        if path != "/metrics" or port not in which:
            return 0, "refused"
        text = f'{state.LAG}{{partition="{(port - 9400) // 100}"}} 1.0\n'
        if which[port]:
            info = 'servioticy_process_info{platform="%s",program="%s",release="1"} 1.0\n'
            text += info % labels[which[port]]
        return 200, text

    monkeypatch.setattr(state, "_get", told)
    cli.main(["status", "--json", "--data", str(data)])
    found = json.loads(capsys.readouterr().out)

    assert [each["partition"] for each in found["partitions"]] == partitions
    assert found["unknown"] == unknown


def test_a_platform_that_is_well_has_exit_code_0(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = json.loads((data / "run.json").read_text())
    (data / "run.json").write_text(json.dumps({**facts, "pids": {"api": os.getpid()}}))

    assert cli.main(["status", "--data", str(data)]) == 0
    assert "  api      ok\n  delivery ok\n" in capsys.readouterr().out


def test_partitions_are_not_known_where_nobody_tells_of_them(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor is it worse than that: the pipeline may have its metrics switched off."""
    facts = json.loads((data / "run.json").read_text())
    for port, why in ((0, "pipeline_metrics_port is 0"), (tcp_ports.free(), "do not answer")):
        changed = {**facts, "pipeline_metrics_port": port, "pids": {}}
        (data / "run.json").write_text(json.dumps(changed))

        assert cli.main(["status", "--data", str(data)]) == 0
        assert why in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"), [([], "servioticy up"), (["--url", "http://127.0.0.1:1"], "--url")]
)
def test_a_platform_that_does_not_run_is_told(
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("SERVIOTICY_DSN", raising=False)
    assert cli.main(["status", "--data", str(tmp_path), *options]) == 1
    assert said in capsys.readouterr().err


def test_a_stream_is_told_with_the_newest_verdict_first() -> None:
    """And nothing that a script says moves the cursor of whoever reads it."""
    verdicts = [
        {
            "verdict": "emitted",
            "count": 1200,
            "last": {"timestamp": 5, "version": 1, "message": "", "inputs": {}},
        },
        {
            "verdict": "script-error",
            "count": 2,
            "last": {
                "timestamp": 1_700_000_000_000,
                "version": 2,
                "message": "boom\x1b[2J\n",
                "inputs": {"raw": 7, "other": None},
            },
        },
    ]
    found = {"state": "active", "cpu-seconds": 0.25, "verdicts": verdicts}

    assert status.of_stream(ID, "s", found) == [
        f"s of {ID}: active",
        "  processor time 0.25 s",
        "script-error  2",
        "  last     1700000000000 (2023-11-14 22:13:20 UTC), version 2",
        "  message  boom\\x1b[2J\\n",
        '  inputs   {"raw": 7, "other": null}',
        "emitted  1,200",
        "  last     5 (1970-01-01 00:00:00 UTC), version 1",
    ]


def test_a_suspended_stream_is_told_until_when_and_why() -> None:
    suspended = {"stream": f"{ID}/s", "why": "its code has ended 3 processes", "until": "2026Z"}
    found = {"state": "suspended", "suspended": suspended, "cpu-seconds": 0, "verdicts": []}

    assert status.of_stream(ID, "s", found) == [
        f"s of {ID}: suspended until 2026Z",
        f"  code of {ID}/s: its code has ended 3 processes",
        "  processor time 0 s",
        "  nothing was computed",
    ]


def test_streams_of_a_service_object_are_a_line_each() -> None:
    last: dict[str, Any] = {"timestamp": 1}
    many = [{"verdict": each, "count": n, "last": last} for each, n in (("stale", 1), ("oom", 2))]
    active = {"state": "active", "cpu-seconds": 0, "verdicts": []}
    rows = {"a": (active, None), "sum": ({**active, "verdicts": many}, {"lastUpdate": 2**53})}

    assert [re.split(" {2,}", each) for each in status.of_object(rows)] == [
        ["stream", "newest update", "state", "computations"],
        ["a", "none", "active", "none"],
        ["sum", "9007199254740992", "active", "oom 2, stale 1"],
    ]


USED = {
    "updates": 1500,
    "computations": {"stale": 1, "emitted": 20},
    "processorSeconds": 0.123,
    "storedUpdates": 10,
    "storedBytes": 1000,
    "deliveries": 0,
    "cost": 0.0,
    "costPerMillionUpdates": None,
}


def test_usage_is_a_line_for_each_row() -> None:
    assert usage.of_usage([USED], "all") == [
        "updates  processor s  stored  stored bytes  deliveries  cost  computations",
        "  1,500         0.12      10         1,000           0     0  emitted 20, stale 1",
    ]
    assert usage.of_usage([], "hour") == ["nothing was used"]


@pytest.mark.parametrize(
    ("by", "key", "told"),
    [
        ("hour", {"hour": 3_600_000}, "3600000 (1970-01-01 01:00:00 UTC)"),
        ("stream", {"serviceObject": "so", "stream": "a\n"}, "so/a\\n"),
        ("provider", {"provider": "others"}, "others"),
        ("grant", {"grant": None}, "none"),
    ],
)
def test_usage_begins_with_what_it_is_of(by: str, key: dict[str, Any], told: str) -> None:
    assert usage.of_usage([{**USED, **key}], by)[1].startswith(told + "  ")


def test_quotas_are_told_with_when_there_is_some_again() -> None:
    quotas = [
        {"name": "documents", "limit": 100_000, "unit": "documents", "used": 2},
        {"name": "sockets", "limit": 10, "unit": "sockets"},
        {"name": "deliveries", "limit": 5, "unit": "an hour", "used": 5, "retryAfter": 61},
    ]

    assert usage.of_quotas(quotas) == [
        "quota            used       of",
        "documents           2  100,000  documents",
        "sockets     not known       10  sockets",
        "deliveries          5        5  an hour    used up; again in 61 s",
    ]


@pytest.mark.parametrize(
    ("value", "told"), [(0, "0"), (1234.0, "1,234"), (1234.567, "1,234.57"), (0.00012, "0.00012")]
)
def test_numbers_have_the_digits_that_say_much(value: float, told: str) -> None:
    assert shown.number(value) == told
