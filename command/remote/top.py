"""`servioticy top`: how the whole platform is, again and again, until Ctrl-C."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from command import shown
from command.remote import access
from servioticy import terminal
from servioticy.client import Rest
from servioticy.settings import Settings

MB = 1_000_000
SHORT_ID = 12
"""Characters of a Service Object's id that are shown: the last ones, as the first are a time."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the API told, and when: seconds of any clock."""

    at: float
    platform: Row
    slowest: Row


Show = Callable[[Reading, Reading | None], None]
"""Shows a reading, and how much more it is in a second than the one before."""


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Show it every so many seconds; once, or until Ctrl-C."""
    with access.rest(parsed, settings) as api:
        before = _read(api, parsed.by)
        if parsed.once:
            if not parsed.json:
                time.sleep(parsed.every)
                shown.say(lines(_read(api, parsed.by), before))
            else:
                _say_json(before)
            return 0
        with _board() as board:
            show = _say_json if parsed.json else board
            show(before, None)
            while True:
                time.sleep(parsed.every)
                now = _read(api, parsed.by)
                show(now, before)
                before = now


def lines(now: Reading, before: Reading | None) -> list[str]:
    """Return the board; how much it is in a second where there was a reading before."""
    parts = [_programs, _partitions, _computed, _pressing, _slowest]
    found: list[str] = []
    for each in parts:
        part = each(now, before)
        found += ["", *part] if found and part else part
    return found


def _programs(now: Reading, before: Reading | None) -> list[str]:
    earlier = {each["name"]: each for each in before.platform["programs"]} if before else {}
    table = [("program", "processor", "memory", "starts", "")]
    for each in now.platform["programs"]:
        share = _rate(each, earlier.get(each["name"], {}), "processorSeconds", now, before)
        memory = each.get("memoryBytes")
        table.append(
            (
                shown.plain(each["name"]),
                "" if share is None else f"{share:.0%}",
                "" if memory is None else f"{memory / MB:,.0f} MB",
                str(each.get("starts", "")),
                shown.plain(each.get("lack", "" if each.get("ready", True) else "not ready")),
            )
        )
    return shown.columns(table, (1, 2, 3))


def _partitions(now: Reading, _before: Reading | None) -> list[str]:
    rows = [
        (str(each["partition"]), f"{each['behind']:,}", f"{each['putOff']:,}")
        for each in now.platform["partitions"]
    ]
    return shown.columns([("partition", "behind", "put off"), *rows], (1, 2)) if rows else []


def _computed(now: Reading, before: Reading | None) -> list[str]:
    told = now.platform["computations"]
    table = [("computations ended as", "since the start", "a second")]
    for name, count in sorted(told.items(), key=lambda each: -each[1]):
        earlier = before.platform["computations"] if before else {}
        rate = _rate(told, {name: 0, **earlier}, name, now, before)
        table.append((name, f"{count:,}", "" if rate is None else shown.number(round(rate, 1))))
    resting = now.platform["restingTenants"]
    rest = [f"{resting} tenants have used up their deliveries"] if resting else []
    kills = now.platform["sandbox"]["kills"]
    ended = ", ".join(f"{shown.plain(kind)} {count:,}" for kind, count in kills.items())
    return [
        *(shown.columns(table, (1, 2)) if told else []),
        *([f"processes of scripts that were ended: {ended}"] if ended else []),
        *rest,
    ]


def _pressing(now: Reading, _before: Reading | None) -> list[str]:
    rows = [
        (
            shown.plain(each["tenant"]),
            str(each["partition"]),
            f"{each['putOff']:,}",
            f"{each['overSeconds']:.2f} s" if each["overSeconds"] else "",
        )
        for each in now.platform["pressing"]
    ]
    titles = ("tenant that presses", "partition", "put off", "over its share")
    return shown.columns([titles, *rows], (1, 2, 3)) if rows else []


def _slowest(now: Reading, _before: Reading | None) -> list[str]:
    table = [("code that takes most", "stream", "tenant", "processor", "computations", "each")]
    for each in now.slowest["streams"]:
        took = each.get("eachSeconds")
        table.append(
            (
                _short(each["serviceObject"]),
                shown.plain(each["stream"]),
                shown.plain(each["tenant"]),
                f"{each['processorSeconds']:,.2f} s",
                f"{each['computations']:,}",
                "" if took is None else f"{took * 1000:,.2f} ms",
            )
        )
    return shown.columns(table, (3, 4, 5)) if len(table) > 1 else []


def _rate(
    now: Row, earlier: Row, name: str, reading: Reading, before: Reading | None
) -> float | None:
    """Return how much more it is in a second; None where that is not known.

    What has become less began anew: the program was started again.
    """
    if before is None or name not in now or name not in earlier or reading.at <= before.at:
        return None
    more = now[name] - earlier[name]
    return None if more < 0 else more / (reading.at - before.at)


def _short(id_: str) -> str:
    return shown.plain(id_ if len(id_) <= SHORT_ID else f"..{id_[-SHORT_ID:]}")


def _read(api: Rest, by: str) -> Reading:
    return Reading(time.monotonic(), api.platform(), api.slowest(by))


def _say_json(reading: Reading, _before: Reading | None = None) -> None:
    shown.say_json({**reading.platform, "slowest": reading.slowest["streams"]})


@contextmanager
def _board() -> Iterator[Show]:
    """Give what shows readings: in one place of a terminal, or below each other elsewhere."""
    console = terminal.console(sys.stdout)
    if console is None:
        yield lambda now, before: shown.say([*lines(now, before), ""])
        return
    from rich.live import Live  # slow, and not needed where nobody looks
    from rich.text import Text

    with Live(console=console, auto_refresh=False, screen=True) as live:

        def show(now: Reading, before: Reading | None) -> None:
            fit = lines(now, before)[: max(1, console.height - 1)]
            live.update(Text("\n".join(fit), no_wrap=True, overflow="crop"), refresh=True)

        yield show
