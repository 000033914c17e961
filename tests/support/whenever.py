"""An executor that works whenever it likes."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from threading import Semaphore, Thread


class Whenever:
    """An executor that does what it is given bit by bit, whenever it likes, and after its task
    has died, too. Between two bits it stands at `stop`, and others go on."""

    def __init__(self, whims: list[bool]) -> None:
        self._whims = iter(whims)
        self.left: list[_Later] = []

    def submit(self, act) -> Future[None]:
        self.left.append(_Later(act, self))
        return self.left[-1]

    def doing(self, act) -> _Later:
        """Return the oldest of what is left that does so."""
        return next(each for each in self.left if each.does(act))

    @property
    def wants(self) -> bool:
        return next(self._whims, True)

    @property
    def is_here(self) -> bool:
        """Whether this is a thread of an executor of this kind."""
        return hasattr(threading.current_thread(), "stop")

    def stop(self) -> None:
        """Let others go on, in a thread of this executor."""
        if self.is_here:
            threading.current_thread().stop()


class _Later(Future):
    def __init__(self, act, executor: Whenever) -> None:
        super().__init__()
        self._act, self._executor = act, executor
        self._goes_on, self._stands = Semaphore(0), Semaphore(0)
        self._thread: Thread | None = None

    def done(self) -> bool:
        if not super().done() and self._executor.wants:
            self.step()
        return super().done()

    def result(self, timeout=None):
        self.do()
        return super().result(timeout)

    def exception(self, timeout=None):
        self.do()
        return super().exception(timeout)

    def does(self, act) -> bool:
        """Whether this is what it does."""
        return self._act == act

    def do(self) -> None:
        """All of it."""
        while not super().done():
            self.step()

    def step(self) -> None:
        """A bit of it."""
        if self._thread is None:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.stop = self._stop
            self._thread.start()
        else:
            self._goes_on.release()
        assert self._stands.acquire(timeout=60)

    def _stop(self) -> None:
        self._stands.release()
        self._goes_on.acquire()

    def _run(self) -> None:
        try:
            self.set_result(self._act())
        except BaseException as error:
            self.set_exception(error)
        self._executor.left.remove(self)
        self._stands.release()
