"""Bytes that an update writes of what windows keep, where their streams are other tenants'.

Beside a window it is noted which of others' updates it has (decisions 0076 and 0110). The operator
of windows takes one update after the other, each as a commit, with what it keeps in memory.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence

import orjson

from sandbox.trees import Kept, Last
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.documents.windows import parse_window
from servioticy.domain.evaluators.operators import Entries, Nothing, Step
from servioticy.domain.evaluators.windows.operator import Windows
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.windowed import WindowsOf
from servioticy.settings import Settings

BASE = 1_700_000_000
WINDOW = {"type": "tumbling", "size": "30d"}
SHUFFLED = 200
"""Updates of which the order is any, where they are not in order."""


def run(_settings: Settings, arguments: Sequence[str]) -> None:
    """Print what an update writes, of streams of one's own and of another tenant's."""
    parser = argparse.ArgumentParser("servioticy bench noted")
    parser.add_argument("--updates", type=int, default=30_000, help="of one window (30,000)")
    parser.add_argument("--streams", type=int, default=10, help="that send by turns (10)")
    options = parser.parse_args(arguments)
    print(f"{'':28} {'mean':>8} {'most':>8} {'entries':>8} {'us/update':>10}")
    for title, is_others, span in (
        ("one's own, in order", False, 1),
        ("another's, in order", True, 1),
        ("another's, shuffled", True, SHUFFLED),
    ):
        sent = _shuffled(options.updates, span)
        written, entries, seconds = _take(sent, options.streams, is_others=is_others)
        print(
            f"{title:28} {sum(written) / len(written):>8.0f} {max(written):>8} {entries:>8}"
            f" {1e6 * seconds / len(written):>10.0f}"
        )


def _shuffled(updates: int, span: int) -> list[int]:
    chance, sent = random.Random(1), list(range(updates))  # noqa: S311
    for first in range(0, updates, span):
        some = sent[first : first + span]
        chance.shuffle(some)
        sent[first : first + span] = some
    return sent


def _take(sent: Sequence[int], streams: int, *, is_others: bool) -> tuple[list[int], int, float]:
    """The bytes that each has written, how many entries there are then, and how long it took."""
    names = tuple(f"s{number}" for number in range(streams))
    outside = frozenset(names if is_others else ())
    window = parse_window(WHOLE.at("streams", "c", words="stream c"), WINDOW, ["air.count"])
    code = OperatorCode(WindowsOf(window, (names,), outside=outside), names, ())
    kept: dict[tuple[int, bytes], Kept] = {}
    written = []
    began = time.thread_time()
    for number, at in enumerate(sent):
        document = orjson.dumps(
            {"channels": {"v": {"current-value": at}}, "lastUpdate": BASE + at}
        )
        trigger = Last(1, BASE + at, document)
        entries = Entries(0, Nothing(kept))
        log = 1000 * (BASE + max(at, number))
        Windows().step(Step(code, log, 0, trigger, None, names[at % streams], (), None), entries)
        for each in entries.changed:
            if each.value is None:
                kept.pop((0, each.key), None)
            else:
                kept[0, each.key] = each
        written.append(sum(len(each.value or b"") for each in entries.changed))
    return written, len(kept), time.thread_time() - began
