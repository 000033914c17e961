"""Bytes between the reader's thread and the loop."""

from __future__ import annotations

import threading
import time

from support.delivery_stores import WAIT_SECONDS

from delivery.byte_semaphore import ByteSemaphore


def acquiring(semaphore: ByteSemaphore, size: int) -> tuple[threading.Thread, list[bool]]:
    """A thread that acquires and has to wait, and what it was answered."""
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(semaphore.acquire(size)), daemon=True)
    thread.start()
    until_somebody_waits(semaphore)
    assert not answers
    return thread, answers


def until_somebody_waits(semaphore: ByteSemaphore) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not semaphore.waiting:
        assert time.monotonic() < deadline, "it did not wait"
        time.sleep(0.001)


def test_whoever_exceeds_the_bytes_waits() -> None:
    semaphore = ByteSemaphore(max_bytes=100, max_batches=10)
    assert semaphore.acquire(60) and semaphore.acquire(40)  # exactly full
    thread, answers = acquiring(semaphore, 1)

    semaphore.release(40)
    thread.join(WAIT_SECONDS)

    assert answers == [True]


def test_whoever_exceeds_the_number_of_batches_waits() -> None:
    semaphore = ByteSemaphore(max_bytes=100, max_batches=2)
    assert semaphore.acquire(0) and semaphore.acquire(0)
    thread, answers = acquiring(semaphore, 0)

    semaphore.release(0)
    thread.join(WAIT_SECONDS)

    assert answers == [True]


def test_a_batch_larger_than_all_passes_alone() -> None:
    """Or it would wait for ever."""
    semaphore = ByteSemaphore(max_bytes=100, max_batches=10)
    assert semaphore.acquire(1)
    thread, answers = acquiring(semaphore, 1000)

    semaphore.release(1)
    thread.join(WAIT_SECONDS)

    assert answers == [True]


def test_nobody_waits_for_one_that_is_closed() -> None:
    semaphore = ByteSemaphore(max_bytes=1, max_batches=1)
    semaphore.acquire(1)
    thread, answers = acquiring(semaphore, 1)
    semaphore.close()
    thread.join(WAIT_SECONDS)

    assert answers == [False]
    assert not semaphore.acquire(0)
