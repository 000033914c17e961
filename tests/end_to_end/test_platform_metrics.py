"""Every program of a running platform tells what it does, and all that it should."""

from __future__ import annotations

import json
import threading
import uuid

from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until
from scraped import names, scrape

from servioticy.domain.model import StreamRef
from servioticy.metrics.names import METRICS

PORTS = {
    **{each: each for each in ("up", "api", "pipeline", "functions")},
    "delivery": "live",
    "broker": "mqtt",
}
DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}
VALUE = '.channels.v["current-value"]'

MOVED = {
    "api": {
        'servioticy_http_requests_total{method="PUT",'
        'route="/<service_object>/streams/<stream>",status="202"}',
        'servioticy_http_request_seconds_count{method="PUT",'
        'route="/<service_object>/streams/<stream>"}',
        "process_cpu_seconds_total",
    },
    "pipeline": {
        'servioticy_updates_stored_total{origin="received"}',
        'servioticy_updates_stored_total{origin="derived"}',
        "servioticy_batch_updates_count",
        'servioticy_computations_total{verdict="emitted"}',
        "servioticy_sandbox_frames_total",
        *(
            f'servioticy_stage_seconds_total{{stage="{stage}"}}'
            for stage in ("dispatch", "fetch", "transform", "emit")
        ),
    },
    "delivery": {"servioticy_emitted_updates_read_total", "servioticy_updates_pushed_total"},
}
"""What must grow when an update goes through."""

NEIGHBOURS = 12
"""So many devices are not all in one partition."""

NEEDS_MORE = {
    "servioticy_put_off_records_total",
    "servioticy_put_off_records_waiting",
    "servioticy_sandbox_kills_total",
    "servioticy_tenant_put_off_records",
    "servioticy_tenant_over_share_seconds",
    "servioticy_woven_steps_total",
    "servioticy_woven_step_seconds_total",
}
"""Metrics that have no value before something goes wrong."""


def told(platform: RunningPlatform) -> dict[str, dict[str, float]]:
    return {name: scrape(platform.metrics_ports[port]) for name, port in PORTS.items()}


def test_an_update_moves_what_every_program_tells(platform: RunningPlatform) -> None:
    device = platform.create(DEVICE)
    code = f"function(d){{return d{VALUE}*2}}"
    doubled = platform.create(
        {
            "version": "0.2.0",
            "groups": {"d": {"soIds": [device], "stream": "data"}},
            "streams": {
                "out": {"channels": {"v": {"type": "number", "current-value": code}}},
            },
        }
    )
    out = StreamRef(doubled, "out")
    got: list[str] = []
    follower = platform.follow(out)
    threading.Thread(
        target=lambda: got.extend(follower.updates()), name="follower", daemon=True
    ).start()
    until(
        lambda: told(platform)["delivery"]["servioticy_delivery_connections"] >= 1,
        SECONDS_TO_RECOVER,
    )
    platform.put(StreamRef(device, "data"), 1, v=1)
    platform.updates(out)
    before = told(platform)
    for number in range(2, 6):
        platform.put(StreamRef(device, "data"), number, v=number)
    platform.updates(out)

    def grown() -> bool:
        after = told(platform)
        return all(
            after[program][name] > before[program].get(name, 0)
            for program, wanted in MOVED.items()
            for name in wanted
        )

    until(grown, SECONDS_TO_RECOVER)
    until(
        lambda: (
            [
                value
                for name, value in told(platform)["pipeline"].items()
                if name.startswith("servioticy_lag_records")
            ]
            == [0, 0]
        ),
        SECONDS_TO_RECOVER,
    )
    after = told(platform)
    for name in ("postgres", "kafka", "pipeline", "api", "delivery", "functions", "broker"):
        assert after["up"][f'servioticy_program_up{{program="{name}"}}'] == 1
        assert after["up"][f'servioticy_program_starts_total{{program="{name}"}}'] >= 1


def test_every_program_tells_its_metrics_and_no_others(platform: RunningPlatform) -> None:
    for program, found in told(platform).items():
        ours = {each for each in names(found) if each.startswith("servioticy_")}
        declared = {each.name for each in METRICS if program in each.program.split(", ")}

        assert ours <= declared
        assert declared - ours <= NEEDS_MORE


def test_who_presses_is_told_by_its_name(platform: RunningPlatform) -> None:
    """While others send, in each partition; who floods is over its share again and again."""
    name = f"flood-{uuid.uuid4().hex}"
    token = platform.command("tenant", "create", name).stdout.strip()
    code = "function(data) { var n = 0; for (var i = 0; i < 300000; i++) n += i; return n }"
    slow = {"channels": {"v": {"type": "number", "current-value": code}}}
    streams = {"data": DEVICE["streams"]["data"], "slow": slow}
    document = {"version": "0.2.0", "streams": streams}
    status, _headers, body = platform.request("POST", "/", document, token)
    assert status == 201, body
    flooding = json.loads(body)["id"]
    neighbours = [StreamRef(platform.create(DEVICE), "data") for _ in range(NEIGHBOURS)]
    sent = 0

    def is_told() -> bool:
        nonlocal sent
        updates = [
            {"channels": {"v": {"current-value": n}}, "lastUpdate": n}
            for n in range(sent + 1, sent + 101)
        ]
        platform.request("POST", f"/{flooding}/streams/data/updates", updates, token)
        sent += 100
        for each in neighbours:
            platform.put(each, sent, v=sent)
        _status, _headers, body = platform.request("GET", "/platform")
        return name in {each["tenant"] for each in json.loads(body)["pressing"]}

    until(is_told, SECONDS_TO_RECOVER)
    assert platform.request("DELETE", f"/{flooding}", None, token)[0] < 300
