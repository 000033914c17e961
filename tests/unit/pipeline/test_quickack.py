"""Which connections are Spark's: those that are there first."""

from __future__ import annotations

import socket

from pipeline.spark import quickack


def test_only_what_was_there_first_is_acknowledged_at_once() -> None:
    """Later ones belong to others, which have to be able to close them."""
    quickack.connections.cache_clear()
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as first,
    ):
        names = {each.getsockname() for each in quickack.connections()}
        with socket.create_connection(listener.getsockname()) as second:
            assert first.getsockname() in names
            assert second.getsockname() not in {
                each.getsockname() for each in quickack.connections()
            }
        quickack.acknowledge()
    for each in quickack.connections():
        each.close()
    quickack.connections.cache_clear()
