"""Updates that are stored, without a pipeline."""

from __future__ import annotations

from api_builders import Served

from servioticy.ports.batches import Batch, StoredUpdate


def store(served: Served, so: str, count: int, size: int = 10) -> list[bytes]:
    """Store so many updates of the stream `a`, and tell what they are."""
    documents = [b'{"lastUpdate":%d,"x":"%b"}' % (n, b"y" * size) for n in range(count)]
    store_documents(served, so, documents)
    return documents


def store_documents(served: Served, so: str, documents: list[bytes], first: int = 0) -> None:
    """Store these as updates of the stream `a`, one a timestamp."""
    key, store = served.platform.stream(so), served.platform.store
    rows = [StoredUpdate(*key, first + n, each, 1, n, 0) for n, each in enumerate(documents)]
    offset = store.begin(0).next_offset
    store.store(Batch(0, offset, offset, 0, rows))
