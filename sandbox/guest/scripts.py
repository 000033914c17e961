"""The JavaScript of our own that an engine starts with: the runner in a locked-down realm."""

from __future__ import annotations

from pathlib import Path

# Downwards: each may use what those above give, and the last two change what all find.
_BOOT = b"""(function (step, clock, helpers, paths, windows, runner, trees, guards, lockdown) {
  "use strict";
  const time = clock(step);
  const iot = helpers(time);
  const ways = paths();
  const run = runner(time, ways);
  const grown = trees(time, run, windows(ways));
  guards();
  lockdown(iot);
  return [run.define, run.source, grown[0], grown[1]];
})"""
_FILES = ("clock", "helpers", "paths", "windows", "runner", "trees", "guards", "lockdown")


CLOCKS = {"frozen": b"0", "running": b"1"}
"""The milliseconds by which each look at the clock moves it on."""


def realm(clock: str = "frozen") -> bytes:
    """Return a script that locks the realm and whose value is `[define, source, wire, grow]`."""
    folder = Path(__file__).with_name("realm")
    parts = [CLOCKS[clock]]
    parts += [(folder / f"{name}.js").read_bytes().rstrip() for name in _FILES]
    return _BOOT + b"(" + b",\n".join(parts) + b")"
