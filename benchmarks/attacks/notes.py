"""What became of each update of the innocent, and when the machine was late: for who looks why."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks import hops
from benchmarks.attacks.idler import Lateness
from benchmarks.attacks.innocent import Innocent
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings

HEADER = "due,logged,answered,emitted,arrived\n"


def write(
    settings: Settings, folder: Path, innocent: Innocent, lateness: Lateness, begin: float
) -> None:
    """Write `innocent.csv` and `machine.csv`.

    In seconds from the attack's beginning (`due`), and in milliseconds from when it was due. What
    did not happen is empty. The platform has to run.
    """
    source = innocent.service_object
    logged, emitted = hops.handed_over(
        settings, StreamRef(source, innocent.sends), StreamRef(source, innocent.watched)
    )
    machine = time.time() - time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "innocent.csv").open("w") as file:
        file.write(HEADER)
        for number, each in enumerate(innocent.sent, 1):
            due = each.due + machine
            after = (
                _after(logged.get(number), due),
                _after(each.answered, each.due),
                _after(emitted.get(number), due),
                _after(each.arrived, each.due),
            )
            file.write(f"{each.due - begin:.3f},{','.join(after)}\n")
    with (folder / "machine.csv").open("w") as file:
        file.write("due,late\n")
        file.writelines(f"{due - begin:.3f},{1000 * s:.1f}\n" for due, s in lateness.times)


def _after(at: float | None, due: float) -> str:
    return "" if at is None else f"{1000 * (at - due):.1f}"
