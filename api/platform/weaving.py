"""What is woven into the programs of this machine, for whoever operates the platform."""

from __future__ import annotations

from typing import Any

from monitoring import status
from servioticy.errors import SettingsError
from servioticy.settings import Settings

MOST = 200
"""Pointcuts and processes that are told of."""


def told(settings: Settings) -> dict[str, Any]:
    """Return what each pointcut is woven into, and what each process publishes.

    Without a data folder nothing follows a file, so nothing is woven.
    """
    try:
        found = status.of(settings)
    except SettingsError as error:
        return {"file": "", "wrong": str(error), "well": False, "pointcuts": [], "processes": []}
    return {
        "file": found.file,
        "wrong": found.wrong,
        "well": found.is_well,
        "pointcuts": [
            {
                "pointcut": each.pointcut,
                "woven": each.woven,
                "of": each.of,
                "functions": each.functions,
                "notWoven": [
                    {"function": name, "why": why} for name, why in each.not_woven.items()
                ],
            }
            for each in found.pointcuts[:MOST]
        ],
        "processes": [
            {
                "program": each.program,
                "pid": each.pid,
                "wrong": each.wrong,
                "published": each.published,
                "dropped": each.dropped,
                "woven": {report.pointcut: report.woven for report in each.reports},
            }
            for each in found.processes[:MOST]
        ],
    }
