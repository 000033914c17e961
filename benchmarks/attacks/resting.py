"""No attack at all: what an innocent tenant waits for by itself, and on a machine that is full."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.attacker import Attacker

_COUNTS = "import sys, time\nend = time.monotonic() + float(sys.argv[1])\n"
_COUNTS += "while time.monotonic() < end: pass"


def _nothing(_attacker: Attacker) -> None:
    return None


def _rest(attacker: Attacker, _nothing: None) -> None:
    time.sleep(attacker.left())


def _count(attacker: Attacker, _nothing: None) -> None:
    """A process for each core, which asks nothing of the platform and wants all of the core."""
    counting = [sys.executable, "-c", _COUNTS, str(attacker.left())]
    for each in [subprocess.Popen(counting) for _ in range(os.cpu_count() or 1)]:
        each.wait()


ATTACKS = (
    Attack("none", "nobody attacks: what comes by itself", _nothing, _rest),
    Attack("busy", "nobody attacks, other programs take each core", _nothing, _count, True),
)
