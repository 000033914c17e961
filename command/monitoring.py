"""What is woven, asked of what the programs have written down."""

from __future__ import annotations

import argparse

import msgspec

from command import shown
from servioticy.settings import Settings


def status(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print it; exit code 1 where something that is asked for is not woven."""
    from monitoring import status as woven

    found = woven.of(settings)
    if parsed.json:
        shown.say_json({**msgspec.to_builtins(found), "well": found.is_well})
    else:
        shown.say([shown.plain(each) for each in woven.lines(found)])
    return 0 if found.is_well else 1
