"""Jobs at the console over the real API: seen, ordered, cancelled; and what is woven."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest
from api_builders import NOW, Caller, Platform, Served
from backfill_builders import computing, document
from console_visits import client, csrf, signed_in, tenant
from flask.testing import FlaskClient

from api.app import create_app
from api.console.jobs import SHOWN
from monitoring.state import FOLDER, ProcessState, birth
from monitoring.weaving.weaver import Report
from sandbox.text import argument_names
from servioticy.settings import Settings, changed

__all__ = ["client", "tenant"]


def ordered(client: FlaskClient, so: str, **more: str) -> str:
    form = {"object": so, "stream": "double", "from": "1", "to": "1000", **more}
    answer = client.post("/console/jobs", data={"csrf": csrf(client), **form})
    assert answer.status_code == 303, answer.text
    found = re.search("/console/jobs/([^?]+)[?]done=ordered", answer.headers["Location"])
    assert found is not None
    return found[1]


def a_device(tenant: Caller) -> str:
    return tenant.create(
        {**document(double=computing("iot.value(a) * 2", "a")), "name": "<i>Hall"}
    )


def test_a_backfill_is_ordered_followed_and_cancelled(client: FlaskClient, tenant: Caller) -> None:
    """Nobody computes here, so it waits for its turn."""
    job = ordered(client, a_device(tenant))
    listed = client.get("/console/jobs").text
    assert "&lt;i&gt;Hall \u203a double" in listed
    assert f"/console/jobs/{job}" in listed
    page = client.get(f"/console/jobs/{job}?done=ordered").text
    assert "The backfill is ordered." in page
    assert "not known yet" in page
    assert f'data-job="{job}"' in page

    cancel = f"/console/jobs/{job}/cancel"
    assert client.post(cancel, data={"csrf": csrf(client)}).status_code == 303
    assert tenant.ask("GET", "/jobs").get_json()["data"] == []
    assert client.post(cancel, data={"csrf": csrf(client)}).status_code == 404
    assert client.get(f"/console/jobs/{job}").status_code == 404


def test_dates_are_taken_as_the_api_takes_them(client: FlaskClient, tenant: Caller) -> None:
    so = a_device(tenant)
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    job = ordered(client, so, **span)

    told = tenant.ask("GET", f"/jobs/{job}").get_json()
    assert (told["from"], told["to"]) == (1_767_225_600_000, 1_767_312_000_000)


@pytest.mark.parametrize(
    ("form", "status", "why"),
    [
        ({"from": "5", "to": "5"}, 400, "to has to be later than from"),
        ({"from": "whenever"}, 400, "from has to be"),
        ({"from": "9" * 30}, 400, "from has to be"),
        ({"stream": "nothing"}, 404, ""),
        ({"stream": "a/b"}, 404, ""),
        ({"object": ""}, 404, ""),
    ],
)
def test_what_cannot_be_ordered_is_told_why(
    form: dict[str, str], status: int, why: str, client: FlaskClient, tenant: Caller
) -> None:
    whole = {"object": a_device(tenant), "stream": "double", "from": "1", "to": "9", **form}
    answer = client.post("/console/jobs", data={"csrf": csrf(client), **whole})

    assert answer.status_code == status, answer.text
    assert why in answer.text


def test_a_job_with_many_failures_shows_the_first(
    client: FlaskClient, served: Served, tenant: Caller
) -> None:
    job = ordered(client, a_device(tenant))
    failures = [{"item": n, "message": f"<b>bad {n}"} for n in range(SHOWN + 7)]
    served.platform.database.rows(
        "UPDATE jobs SET state = 'failed', failed = 57, failures = %(failures)s::json",
        {"failures": msgspec.json.encode(failures).decode()},
    )
    page = client.get(f"/console/jobs/{job}").text

    assert "item 0: &lt;b&gt;bad 0" in page
    assert f"bad {SHOWN}" not in page
    assert "And 7 more." in page
    assert "data-job" not in page, "it does not go on"
    assert "Cancel the backfill" not in page


def test_jobs_of_others_are_not_there(client: FlaskClient, tenant: Caller, served: Served) -> None:
    job = ordered(client, a_device(tenant))
    stranger = signed_in(served, served.tenant("stranger").token)

    assert job not in stranger.get("/console/jobs").text
    assert stranger.get(f"/console/jobs/{job}").status_code == 404
    cancel = f"/console/jobs/{job}/cancel"
    assert stranger.post(cancel, data={"csrf": csrf(stranger)}).status_code == 404
    assert tenant.ask("GET", f"/jobs/{job}").status_code == 200


ASPECTS = """
[[aspect]]
pointcut = "pipeline.stages.*"
[[aspect]]
pointcut = "api.request"
"""


@pytest.fixture
def woven(backend: Platform, tmp_path: Path) -> Served:
    """The API of a machine with an aspects file, and a process that has told what it did."""
    (tmp_path / "aspects.toml").write_text(ASPECTS)
    folder = tmp_path / FOLDER / "processes"
    folder.mkdir(parents=True)
    pid = os.getpid()
    reports = [Report("pipeline.stages.*", 4, {}), Report("api.request", 0, {"api.<b>": "gone"})]
    state = ProcessState("pipeline", pid, birth(pid), "", reports, 1200, 3)
    (folder / f"{pid}.json").write_bytes(msgspec.json.encode(state))
    settings = changed(Settings(), data=str(tmp_path), operator_tenant="examples")
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


def test_the_operator_sees_what_is_woven(woven: Served, tmp_path: Path) -> None:
    operator = woven.tenant("examples")
    told = operator.ask("GET", "/platform/monitoring").get_json()

    assert (told["file"], told["wrong"], told["well"]) == (
        str(tmp_path / "aspects.toml"),
        "",
        False,
    )
    assert told["pointcuts"] == [
        {
            "pointcut": "pipeline.stages.*",
            "woven": 1,
            "of": 1,
            "functions": 4,
            "notWoven": [],
        },
        {
            "pointcut": "api.request",
            "woven": 0,
            "of": 1,
            "functions": 0,
            "notWoven": [{"function": "api.<b>", "why": "gone"}],
        },
    ]
    (process,) = told["processes"]
    assert (process["published"], process["dropped"]) == (1200, 3)
    assert process["woven"] == {"pipeline.stages.*": 4, "api.request": 0}
    page = signed_in(woven, operator.token).get("/console/platform/monitoring").text
    assert "in 1 of 1" in page
    assert "in 0 of 1" in page
    assert "api.&lt;b&gt;" in page


def test_a_file_that_is_not_understood_is_told(woven: Served, tmp_path: Path) -> None:
    operator = woven.tenant("examples")
    (tmp_path / "aspects.toml").write_text("[[aspect]]\npointcut = 5\n")
    told = operator.ask("GET", "/platform/monitoring").get_json()

    assert "$.aspect[0].pointcut" in told["wrong"]
    page = signed_in(woven, operator.token).get("/console/platform/monitoring").text
    assert "The file is not understood" in page


def test_without_a_data_folder_nothing_is_woven(backend: Platform, tmp_path: Path) -> None:
    settings = changed(Settings(), data=str(tmp_path / "nowhere"), operator_tenant="examples")
    served = Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)
    operator = served.tenant("examples")
    told = operator.ask("GET", "/platform/monitoring").get_json()

    assert (told["pointcuts"], told["processes"], told["well"]) == ([], [], False)
    page = signed_in(served, operator.token).get("/console/platform/monitoring")
    assert page.status_code == 200
