"""Jobs: how far what was accepted is done; backfills are ordered and cancelled here."""

from __future__ import annotations

from typing import Any, NamedTuple

from flask import Flask, g, redirect, render_template, request

from api.console.asking import Api, path_of
from api.console.names import Names, offered
from servioticy.domain.console import ROOT

JOBS = f"{ROOT}/jobs"
OPEN = frozenset({"waiting", "running", "swapping"})
LOOKS = {"done": "good", "failed": "bad", "superseded": ""}
"""The class of a state's badge; others are on the way."""
NAMED = 50
"""Backfills whose Service Objects are told by their names."""
SHOWN = 50
"""Failures of a job."""
DONE = {
    "ordered": "The backfill is ordered.",
    "cancelled": "The backfill is cancelled, and nothing of it is left.",
}


class Job(NamedTuple):
    """A job as it is shown."""

    told: dict[str, Any]
    what: str

    @property
    def is_open(self) -> bool:
        """Whether it goes on."""
        return self.told["state"] in OPEN

    @property
    def looks(self) -> str:
        """The class of its badge."""
        return LOOKS.get(self.told["state"], "wait")

    @property
    def may_end(self) -> bool:
        """Whether it can be cancelled."""
        return self.told["kind"] == "backfill" and self.is_open

    @property
    def part(self) -> float | None:
        """How much is done, from 0 to 1; None: how much there is is not known yet."""
        total: int | None = self.told["total"]
        if not total:
            return 1.0 if self.told["state"] == "done" else None
        ended: int = self.told["done"] + self.told["failed"]
        return min(1.0, ended / total)


def add(app: Flask, base: str) -> None:
    """`/console/jobs`, `/console/jobs/{id}` and what is asked of it there."""

    @app.get(JOBS)
    def job_list() -> str:
        api: Api = g.signed.api
        names, found = Names(api), api.get("jobs")["data"]
        jobs = [_job(each, names if at < NAMED else None) for at, each in enumerate(found)]
        return render_template("jobs.html", jobs=jobs, offered=offered(api), done=_done())

    @app.post(JOBS)
    def order_backfill() -> Any:
        form = request.form
        body = {name: _moment(form.get(name, "")) for name in ("from", "to")}
        names = (form.get("object", "").strip(), "streams", form.get("stream", "").strip())
        ordered = g.signed.api.post(*names, "backfill", body=body)
        return _back(base, ordered["job"], "ordered")

    @app.get(f"{JOBS}/<job>")
    def job_page(job: str) -> str:
        api: Api = g.signed.api
        found = _job(api.get("jobs", job), Names(api))
        failures = found.told["failures"]
        return render_template(
            "job.html",
            job=found,
            failures=failures[:SHOWN],
            more=max(0, len(failures) - SHOWN),
            done=_done(),
        )

    @app.post(f"{JOBS}/<job>/cancel")
    def cancel_job(job: str) -> Any:
        g.signed.api.ask("DELETE", "jobs", job)
        return redirect(f"{base}{JOBS}?done=cancelled", 303)


def _job(told: dict[str, Any], names: Names | None) -> Job:
    if told["kind"] != "backfill":
        return Job(told, f"template {told['template']}, version {told['version']}")
    id_ = told["serviceObject"]
    return Job(told, f"{names.of(id_)[0] if names else id_} \u203a {told['stream']}")


def _moment(text: str) -> int | str:
    """Return a field as the API takes it: a timestamp is a number, a date is text."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text


def _done() -> str:
    return DONE.get(request.args.get("done", ""), "")


def _back(base: str, job: str, done: str) -> Any:
    return redirect(f"{base}{JOBS}{path_of(job)}?done={done}", 303)
