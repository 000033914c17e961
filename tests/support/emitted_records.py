"""Records of the topic `emitted` that nobody had to write down."""

from __future__ import annotations

from servioticy.domain.model import StreamRef
from servioticy.domain.records import ConsumedRecord, EmittedRecord


class Known(ConsumedRecord):
    """A record, whatever is in it, as if it had just come from the topic."""

    @property
    def stream(self) -> StreamRef:
        return StreamRef(self.record.service_object, self.record.stream)

    @property
    def size(self) -> int:
        return memoryview(self.record.update).nbytes

    def read(self) -> EmittedRecord:
        return self.record
