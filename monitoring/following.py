"""Each process follows the file of aspects: what it says is woven, and unwoven, while it runs.

A file is there before any process and after all of them, needs no connection to them, and is what
an operator edits anyway. It is looked at once a second; while there is none nothing else is done.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
import sys
import threading
from pathlib import Path

from monitoring.configuration import Configuration, NotUnderstood, file_of, read, stamp_of
from monitoring.outbox import Outbox
from monitoring.publishers.every import Every, Surroundings
from monitoring.publishers.sums import Sums
from monitoring.sequences import Maker, step_under_way
from monitoring.state import FOLDER, ProcessState, StateFile, birth
from monitoring.weaving import weaver as weaving
from monitoring.weaving.weaver import Report, Weaver
from servioticy.domain.traces import MAKING
from servioticy.metrics import Registry
from servioticy.metrics.names import (
    MEASUREMENTS,
    MEASUREMENTS_DROPPED,
    STEP_SECONDS,
    STEPS,
    WOVEN,
)
from servioticy.settings import Settings

log = logging.getLogger("servioticy.monitoring")

LOOK_SECONDS = 1.0
AT_ONCE = 1_000
"""Measurements that publishers are given."""


def begin(settings: Settings, program: str, registry: Registry | None) -> Following:
    """Weave in this process what the file of aspects says, now and from now on.

    The registry is None where the program has other processes that tell how much is woven.
    """
    following = Following(file_of(settings), settings.data_path, program, settings)
    if registry is not None:
        registry.observe(MEASUREMENTS, lambda: following.published)
        registry.observe(MEASUREMENTS_DROPPED, lambda: following.dropped)
        registry.observe(WOVEN, lambda: following.woven)
        registry.observe(STEPS, following.sums.steps)
        registry.observe(STEP_SECONDS, following.sums.seconds)
    following.start()
    return following


class Following:
    """Weaves and publishes, in a thread of its own. `look` is for tests that have none."""

    def __init__(
        self,
        file: Path,
        data: Path,
        program: str,
        settings: Settings | None = None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._pid = pid = os.getpid()
        self._look_seconds = look_seconds
        self._file, self._program, self._birth = file, program, birth(pid)
        measurements = data / FOLDER / "measurements" / f"{program}-{pid}.ndjson"
        self.sums = Sums()
        self._state = StateFile(data)
        self._outbox = Outbox()
        self._here = Surroundings(
            measurements,
            self.sums,
            settings or Settings(),
            program,
            file.parent,
            self._outbox.quiet,
        )
        self._weaver = Weaver(f"{socket.gethostname()}/{program}/{pid}")
        self._every: Every | None = None
        self._stamp: tuple[int, ...] | None = None
        self._modules = 0
        self._configuration = Configuration()
        self._wrong = ""
        self._reports: list[Report] = []
        self._lost = 0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.published = 0

    @property
    def dropped(self) -> int:
        """Measurements that nobody was told of."""
        now = 0 if self._every is None else self._every.lost
        return self._outbox.dropped + self._lost + now

    @property
    def woven(self) -> int:
        """Functions that are woven now."""
        return sum(each.woven for each in self._reports)

    def names(self, module: str) -> bool:
        """Whether a pointcut may name something of a module."""
        return any(
            weaving.names(each.pointcut, module)
            for each in self._configuration.aspect
            if each.language == "python"
        ) and (threading.get_ident() not in self._outbox.silent)

    def start(self) -> None:
        """Weave what there is, and follow from then on."""
        self._look_safely()
        atexit.register(self.stop)
        threading.Thread(target=self._follow, name="monitoring", daemon=True).start()

    def stop(self) -> None:
        """Unweave everything, and publish what waits."""
        if os.getpid() != self._pid:  # a fork: nothing is woven there
            return
        self._ended.set()
        with self._lock, self._outbox.quiet():
            self._weaver.unweave()
            self._reports = []
            self._let_make()
            self._publish()
            self._use(None)
            self._state.forget()

    def look(self) -> None:
        """Weave what is to be woven by now, and publish what waits."""
        with self._lock, self._outbox.quiet():
            if self._ended.is_set():
                return
            changed, loaded = self._read(), len(sys.modules)
            if changed or loaded != self._modules:
                self._modules = loaded
                self._reports = self._weaver.weave(self._configuration.aspect, self._outbox)
                self._let_make()
            self._weaver.tell_calls()
            self._publish()
            if self._stamp is not None:
                self._state.tell(self._told())
            elif changed:
                self._state.forget()

    def _follow(self) -> None:
        while not self._ended.wait(self._look_seconds):
            self._look_safely()

    def _look_safely(self) -> None:
        """Monitoring that fails ends no program."""
        try:
            self.look()
        except Exception:
            log.exception("monitoring_failed")

    def _read(self) -> bool:
        """Read the file, if it is another; whether it was. What cannot be read changes nothing."""
        stamp = stamp_of(self._file)
        if stamp == self._stamp:
            return False
        self._stamp, self._wrong = stamp, ""
        try:
            chosen = Configuration() if stamp is None else read(self._file)
            every = None if stamp is None else Every(chosen.publish, self._here)
        except NotUnderstood as error:
            self._wrong = str(error)
            log.error("aspects_not_understood", extra={"file": str(self._file), "why": str(error)})
            return False
        self._configuration = chosen
        self._outbox.hold(chosen.publish.buffer_bytes)
        self._publish()
        self._use(every)
        log.info("aspects_read", extra={"file": str(self._file), "aspects": len(chosen.aspect)})
        return True

    def _let_make(self) -> None:
        """Have trace contexts made where anything is measured here, as far as it is sampled."""
        woven = {each.pointcut for each in self._reports if each.woven}
        rates = [
            each.sample
            for each in self._configuration.aspect
            if each.pointcut in woven and each.measures != ("count",)
        ]
        MAKING.make = Maker(max(rates)) if rates else None
        MAKING.step_under_way = step_under_way if rates else None

    def _use(self, every: Every | None) -> None:
        """Publish by others from now on."""
        if self._every is not None:
            self._every.close()
            self._lost += self._every.lost
        self._every = every

    def _publish(self) -> None:
        """Publish what waits now: more may come all the time, and the file is to be followed."""
        for _ in range(0, len(self._outbox), AT_ONCE):
            some = self._outbox.take(AT_ONCE)
            lost = len(some) if self._every is None else self._every.publish(some)
            self._lost += lost
            self.published += len(some) - lost

    def _told(self) -> ProcessState:
        numbers = self.published, self.dropped
        return ProcessState(
            self._program, self._pid, self._birth, self._wrong, self._reports, *numbers
        )
