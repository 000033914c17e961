"""Bytes between the reader's thread and the loop."""

from __future__ import annotations

import threading

from delivery.room import Room


def entering(room: Room, size: int) -> tuple[threading.Thread, list[bool]]:
    """A thread that enters, and what it was told."""
    told: list[bool] = []
    thread = threading.Thread(target=lambda: told.append(room.enter(size)), daemon=True)
    thread.start()
    return thread, told


def test_who_passes_the_bytes_waits_for_room() -> None:
    room = Room(max_bytes=100, max_batches=10)
    assert room.enter(60) and room.enter(40)  # exactly full
    thread, told = entering(room, 1)
    thread.join(0.1)
    assert not told

    room.leave(40)
    thread.join(10)

    assert told == [True]


def test_who_passes_the_number_waits_for_room() -> None:
    room = Room(max_bytes=100, max_batches=2)
    assert room.enter(0) and room.enter(0)
    thread, told = entering(room, 0)
    thread.join(0.1)
    assert not told

    room.leave(0)
    thread.join(10)

    assert told == [True]


def test_what_is_larger_than_the_room_enters_alone() -> None:
    """Or it would wait for ever."""
    room = Room(max_bytes=100, max_batches=10)
    assert room.enter(1)
    thread, told = entering(room, 1000)
    thread.join(0.1)
    assert not told

    room.leave(1)
    thread.join(10)

    assert told == [True]


def test_nobody_waits_for_what_is_closed() -> None:
    room = Room(max_bytes=1, max_batches=1)
    room.enter(1)
    thread, told = entering(room, 1)
    room.close()
    thread.join(10)

    assert told == [False]
    assert not room.enter(0)
