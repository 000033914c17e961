"""`servioticy usage`: what a tenant has used, and beside it how much it may."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from command import shown
from command.remote import access
from servioticy.settings import Settings

Row = Mapping[str, Any]
VALUES = {
    "updates": "updates",
    "processorSeconds": "processor s",
    "storedUpdates": "stored",
    "storedBytes": "stored bytes",
    "deliveries": "deliveries",
    "cost": "cost",
}


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print what was used, and the quotas."""
    with access.rest(parsed, settings) as api:
        used = list(api.usage(parsed.by, parsed.after, parsed.before))
        quotas = api.quotas()
    if parsed.json:
        shown.say_json({"usage": used, "quotas": quotas})
    else:
        shown.say([*of_usage(used, parsed.by), "", *of_quotas(quotas)])
    return 0


def of_usage(rows: Sequence[Row], by: str) -> list[str]:
    """Return a line for each row of usage, below their names."""
    if not rows:
        return ["nothing was used"]
    titles = (*(() if by == "all" else (by,)), *VALUES.values(), "computations")
    table = [titles, *(_used(each, by) for each in rows)]
    first = 0 if by == "all" else 1
    return shown.columns(table, range(first, first + len(VALUES)))


def of_quotas(rows: Sequence[Row]) -> list[str]:
    """Return a line for each quota, below their names."""
    table = [("quota", "used", "of", "", "")]
    for each in rows:
        used = each.get("used")
        again = each.get("retryAfter")
        table.append(
            (
                each["name"],
                "not known" if used is None else shown.number(used),
                shown.number(each["limit"]),
                each["unit"],
                "" if again is None else f"used up; again in {shown.number(again)} s",
            )
        )
    return shown.columns(table, (1, 2))


def _used(row: Row, by: str) -> tuple[str, ...]:
    computed = sorted(row["computations"].items(), key=lambda each: -each[1])
    told = ", ".join(f"{verdict} {count:,}" for verdict, count in computed)
    key = () if by == "all" else (_key(row, by),)
    return (*key, *(shown.number(row[name]) for name in VALUES), told or "none")


def _key(row: Row, by: str) -> str:
    match by:
        case "hour" | "day":
            return shown.moment(row[by])
        case "stream":
            return shown.plain(f"{row['serviceObject']}/{row['stream']}")
    return "none" if row[by] is None else shown.plain(row[by])
