"""The JavaScript of our own that an engine starts with: the runner in a locked-down realm."""

from __future__ import annotations

from pathlib import Path

# Downwards: each may use what those above give, and the last two change what all find.
_BOOT = b"""(function (clock, helpers, paths, runner, guards, lockdown) {
  "use strict";
  const time = clock();
  const iot = helpers(time);
  const parts = runner(time, paths());
  guards();
  lockdown(iot);
  return parts;
})"""
_FILES = ("clock", "helpers", "paths", "runner", "guards", "lockdown")


def realm() -> bytes:
    """Return a script that locks the realm and whose value is `[define, source, run]`."""
    folder = Path(__file__).with_name("realm")
    parts = [(folder / f"{name}.js").read_bytes().rstrip() for name in _FILES]
    return _BOOT + b"(" + b",\n".join(parts) + b")"
