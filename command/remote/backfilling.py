"""`servioticy backfill`: a composite stream computed from history, by a job that is waited for."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from command import shown
from command.remote import access, naming
from servioticy.client.rest import Rest
from servioticy.settings import Settings

Job = Mapping[str, Any]
PAUSE_SECONDS = 0.5
UNFINISHED = ("waiting", "running", "swapping")


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Order the job, wait for it, and tell how it ended; exit code 1 where that is in vain."""
    with access.rest(parsed, settings) as api:
        id_, stream = naming.stream_of(parsed.words, api)
        job = _finished(api.backfill(id_, stream, parsed.after, parsed.before), api)
    if parsed.json:
        shown.say_json(job)
    else:
        shown.say(lines(job))
    return 0 if job["state"] == "done" else 1


def lines(job: Job) -> list[str]:
    """Return what is told of a backfill that has ended."""
    told = [f"{job['state']}: {job['done']:,} updates read"]
    if job["rate"] is not None:
        told[0] += f", {job['rate']:,.0f} a second"
    return told + [shown.plain(each["message"]) for each in job["failures"]]


def _finished(id_: str, api: Rest) -> Job:
    while True:
        job = api.job(id_)
        if job["state"] not in UNFINISHED:
            return job
        time.sleep(PAUSE_SECONDS)
