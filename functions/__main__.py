"""`python -m functions` runs until SIGTERM or SIGINT: it waits for atoms, works on none itself.

While nothing waits for anybody there is this process alone, which listens to Postgres and loads
little. Where something comes it runs `working.py`, and when that has ended as nothing more came it
waits again.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from functions.limits import limits
from servioticy import logs, settings
from servioticy.domain.workflows.stores import stores
from servioticy.domain.workflows.tables import databases
from servioticy.errors import ServioticyError, SettingsError, Unavailable
from servioticy.metrics import Registry
from servioticy.metrics.names import FUNCTIONS_PROCESSES, FUNCTIONS_STARTS
from servioticy.serving_metrics import serve
from servioticy.settings import Settings
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.roles import Role

COMMAND = (sys.executable, "-P", "-m", "functions.working")
SPARE = "--spare"
"""Says that it is to load what it takes to work, and to begin when it is told."""
LISTEN_SECONDS = 300.0
"""It is woken by what comes; it looks by itself where that was lost with a connection."""
PAUSE_SECONDS = 1.0
"""Where the store is away, or working ended with a fault."""
SPARE_SECONDS = 10.0
"""For it to end what it has at hand, once nobody will tell it to begin."""
END_SECONDS = 27.0
"""For who works to end: longer than it waits for its instances (`dispatcher.py`), and less than
the 30 after which those who stop programs kill them."""
READY_FILE = "SERVIOTICY_FUNCTIONS_READY_FILE"
"""Names a file that is made when it is known what waits."""

log = logging.getLogger("functions")


class Stopped(Exception):
    """We are told to end."""


class Waiting:
    """Waits, and has a process work while something is there to do.

    With a *spare* the next one is loaded already, so that nobody waits for that: it belongs to
    no tenant, has nothing open, and takes no processor time.
    """

    def __init__(
        self,
        atoms: PostgresAtoms,
        clock: Callable[[], float] = time.time,
        keeps_spare: bool = False,
    ) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._atoms = atoms
        self._clock = clock
        self._keeps_spare = keeps_spare
        self._spare: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Go on until Stopped."""
        self._atoms.heard(0.0)
        _tell_ready()
        while True:
            try:
                due = self._atoms.due()
                now = int(self._clock() * 1000)
                if due is not None and due <= now:
                    self._work()
                else:
                    self._prepare()
                    left = LISTEN_SECONDS if due is None else (due - now) / 1000
                    self._atoms.heard(min(LISTEN_SECONDS, left))
            except Unavailable as error:
                log.warning("atoms_not_seen", extra={"why": str(error)[:200]})
                time.sleep(PAUSE_SECONDS)

    def _work(self) -> None:
        self.starts += 1
        self.process = self._told() or subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL)
        code = self.process.wait()
        self.process = None
        if code:
            log.warning("working_ended", extra={"code": code})
            time.sleep(PAUSE_SECONDS)

    def _prepare(self) -> None:
        if self._keeps_spare and (self._spare is None or self._spare.poll() is not None):
            self._spare = subprocess.Popen([*COMMAND, SPARE], stdin=subprocess.PIPE)

    def _told(self) -> subprocess.Popen[bytes] | None:
        """Return the spare, which begins now; None: there is none that can."""
        spare, self._spare = self._spare, None
        if spare is None or spare.stdin is None or spare.poll() is not None:
            return None
        try:
            with spare.stdin as told:
                told.write(b"\n")
        except BrokenPipeError:
            spare.wait()
            return None
        return spare

    def end(self) -> None:
        """Let the process finish what it has in hand; the spare has nothing."""
        if self._spare is not None and self._spare.stdin is not None:
            self._spare.stdin.close()
            _ended(self._spare, SPARE_SECONDS)
        if self.process is not None:
            self.process.terminate()
            _ended(self.process, END_SECONDS)


def _ended(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for its end, which it has after so long at the latest."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(chosen: Settings) -> None:
    """Wait and work until told to stop."""
    limits(chosen)  # what is wrong with them is told now
    stores(chosen.functions.stores)
    databases(chosen.functions.databases)
    if not chosen.store.dsn:
        raise SettingsError("no Postgres is named: set SERVIOTICY_DSN")
    atoms = PostgresAtoms(Database(chosen.store.dsn, role=Role.DELIVERY))
    waiting = Waiting(atoms, keeps_spare=chosen.functions.spare)
    registry = Registry()
    registry.observe(FUNCTIONS_PROCESSES, lambda: int(waiting.process is not None))
    registry.observe(FUNCTIONS_STARTS, lambda: waiting.starts)
    serve(registry, chosen, "functions")

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        waiting.run()
    except Stopped:
        pass
    finally:
        waiting.end()


def _tell_ready() -> None:
    if os.environ.get(READY_FILE):
        Path(os.environ[READY_FILE]).touch()


def main() -> int:
    """Run; an expected failure is one line and exit code 1."""
    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        run(chosen)
    except (ServioticyError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
