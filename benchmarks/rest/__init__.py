"""The REST API under load: PUTs, batches, histories, exports; and what they cost by layer."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from benchmarks.rest import batches, puts, reads
from benchmarks.rest.served import Served, served
from servioticy.settings import Settings, changed

PARTS: dict[str, Callable[[Served, float], None]] = {
    "puts": puts.run,
    "batches": batches.run,
    "reads": reads.run,
}


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print the figures of each part, or of the one that is named."""
    parser = argparse.ArgumentParser("servioticy bench rest")
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=5.0, help="that each measure takes")
    options = parser.parse_args(arguments)
    # Nothing computes here: no read waits for it, and no tenant is told to send less.
    own = changed(
        settings, read_wait_seconds=0.0, tenant_bytes_per_second=1 << 40, api_queue_of_one=1_000
    )
    with served(own) as found:
        for name, part in PARTS.items():
            if options.part in (None, name):
                part(found, options.seconds)
