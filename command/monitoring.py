"""What is woven, and what was measured, asked of what the programs have written down."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from command import shown
from servioticy.errors import ServioticyError, SettingsError
from servioticy.settings import Settings

if TYPE_CHECKING:
    from monitoring.analysis.comparing import Compared
    from monitoring.analysis.steps import Step

LATENCY = "latency between steps, ms"


def status(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print it; exit code 1 where something that is asked for is not woven."""
    from monitoring import status as woven

    found = woven.of(settings)
    if parsed.json:
        shown.say_json({**msgspec.to_builtins(found), "well": found.is_well})
    else:
        shown.say([shown.plain(each) for each in woven.lines(found)])
    return 0 if found.is_well else 1


def analyse(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print what measurements say, and draw them where that is asked for."""
    from monitoring.analysis import analysing, boxes, steps

    found = analysing.analysed(steps.read(_files(parsed, settings)))
    if parsed.svg is not None:
        Path(parsed.svg).write_text(boxes.drawn(found), encoding="utf-8")
    if parsed.json:
        shown.say_json(msgspec.to_builtins(found))
    else:
        shown.say([shown.plain(each) for each in _tables(found)])
    return 0


def compare(parsed: argparse.Namespace, _settings: Settings) -> int:
    """Print which steps take longer; exit code 1 where one does, 2 where nothing is compared."""
    from monitoring.analysis import comparing, steps

    try:
        if (parsed.after is None) == (parsed.at is None):
            raise SettingsError("name two runs, or one and --at")
        before = steps.read(_within(parsed.before)).steps
        if parsed.after is None:
            at = parsed.at * 1_000_000
            before, after = _cut(before, at)
        else:
            after = steps.read(_within(parsed.after)).steps
        if not before or not after:
            raise SettingsError("one of both has no steps")
    except (ServioticyError, OSError) as error:
        sys.stderr.write(f"error: {shown.plain(str(error))}\n")
        return 2
    thresholds = comparing.Thresholds(
        parsed.chance, parsed.change / 100, parsed.least, parsed.least_ms * 1e6
    )
    found = comparing.compared(before, after, thresholds)
    worse = [each for each in found if each.verdict == comparing.WORSE]
    if parsed.json:
        told = {"regressions": len(worse), "compared": msgspec.to_builtins(found)}
        shown.say_json(told)
    else:
        shown.say([shown.plain(each) for each in _compared(found)])
    return 1 if worse else 0


def _cut(steps: Sequence[Step], at: int) -> tuple[list[Step], list[Step]]:
    """Those of sequences that have begun before, and the others: none is torn."""
    begun: dict[str, int] = {}
    for each in steps:
        begun[each.sequence] = min(each.start, begun.get(each.sequence, each.start))
    return (
        [each for each in steps if begun[each.sequence] < at],
        [each for each in steps if begun[each.sequence] >= at],
    )


def _within(place: Path) -> list[Path]:
    """A file, or all that a folder has. Raises SettingsError."""
    if not place.is_dir():
        return [place]
    found = sorted([*place.glob("*.ndjson"), *place.glob("*.ndjson.1")])
    if not found:
        raise SettingsError(f"there are no measurements in {place}")
    return found


def _compared(found: Sequence[Compared]) -> list[str]:
    head = ("", "what", "times", "before, ms", "after, ms", "change", "later longer", "p")
    rows = [
        (
            each.verdict,
            each.what,
            f"{each.times[0]:,} / {each.times[1]:,}",
            "" if each.before is None else f"{each.before / 1e6:.3f}",
            "" if each.after is None else f"{each.after / 1e6:.3f}",
            "" if each.change is None else f"{100 * each.change:+.1f} %",
            "" if each.larger is None else f"{100 * each.larger:.0f} %",
            "" if each.p is None else f"{each.p:.2g}",
        )
        for each in found
    ]
    return shown.columns([head, *rows], range(2, 8))


def trace(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print the steps of a trace; exit code 1 where none was measured."""
    from monitoring.analysis import tracing

    found = tracing.traced(_files(parsed, settings), parsed.trace)
    if parsed.json:
        shown.say_json(msgspec.to_builtins(found))
        return 0 if found else 1
    head = ("after, ms", "lasted, ms", "step", "node", "")
    rows = [
        (
            f"{each.after / 1e6:.3f}",
            f"{each.lasted / 1e6:.3f}",
            f"{'  ' * each.depth}{each.purpose}",
            each.node,
            ", ".join(_beside(each)),
        )
        for each in found
    ]
    shown.say([shown.plain(each) for each in shown.columns([head, *rows], (0, 1))])
    return 0 if found else 1


def _beside(step: Any) -> list[str]:
    told = [f"together with {step.others} others"] if step.others else []
    return [*told, *([step.error] if step.error else [])]


def _files(parsed: argparse.Namespace, settings: Settings) -> list[Path]:
    """The files named, else all of the data folder. Raises SettingsError where there are none."""
    from monitoring.state import FOLDER, measurements

    if name := getattr(parsed, "application", None):
        from monitoring.applications import repository

        repository.registered(settings.data_path, name)
        if files := repository.Place(settings.data_path, name).files():
            return files
        raise SettingsError(f"nothing was measured of {name} yet")
    files = parsed.files or measurements(settings.data_path)
    if not files:
        here = settings.data_path / FOLDER / "measurements"
        raise SettingsError(f"there are no measurements in {here}; name files of them")
    return list(files)


def _tables(found: Any) -> list[str]:
    told = [f"{found.steps:,} steps, {found.skipped:,} lines skipped"]
    for title, spreads, unit in (
        ("runtime of steps, ms", found.runtime, 1e6),
        (LATENCY, found.latency, 1e6),
        ("runtime of sequences, ms", found.sequences, 1e6),
        ("part of sequences in which no step runs, %", found.framework, 0.01),
    ):
        if not spreads:
            continue
        head = ("  what", "node", "times", "least", "25 %", "middle", "75 %", "99 %", "most")
        rows = [
            (
                f"  {each.what}",
                _node(title, each.node),
                f"{each.count:,}",
                *(
                    f"{value / unit:.3f}"
                    for value in (
                        *(each.least, each.low, each.middle),
                        *(each.high, each.p99, each.most),
                    )
                ),
            )
            for each in spreads
        ]
        told += ["", title, *shown.columns([head, *rows], range(2, 9))]
    if found.clocks:
        pairs = [(f"  {each.first}", each.second, each.told()) for each in found.clocks]
        names = ("  of", "and", "the second is ahead, ms")
        told += ["", "clocks of machines", *shown.columns([names, *pairs], ())]
    return told


def _node(title: str, node: str) -> str:
    return "one clock" if title == LATENCY and not node else node
