"""All twins over one state."""

from __future__ import annotations

from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.records import LogRecord, read_record
from servioticy.memory.catalog import MemoryCatalog
from servioticy.memory.history import MemoryHistory
from servioticy.memory.log import MemoryLog
from servioticy.memory.output import MemoryOutput
from servioticy.memory.partition_store import MemoryPartitionStore
from servioticy.memory.state import State


class MemoryPlatform:
    """The ports of one platform; `state` is what Postgres and Kafka would hold."""

    def __init__(self, partitions: int = 1) -> None:
        self.state = State(log=[[] for _ in range(partitions)])
        self.catalog = MemoryCatalog(self.state)
        self.history = MemoryHistory(self.state)
        self.log = MemoryLog(self.state)

    def partition_store(self, argument_names: ArgumentNames) -> MemoryPartitionStore:
        """What a pipeline's task keeps."""
        return MemoryPartitionStore(self.state, argument_names)

    def output(self, partition: int) -> MemoryOutput:
        """Where the task of this partition sends what it stored."""
        return MemoryOutput(self.state, partition)

    def records(self, partition: int, first_offset: int = 0) -> list[tuple[int, LogRecord]]:
        """What stands in a partition of the log from an offset on, with each one's offset."""
        values = list(self.state.log[partition])
        return [
            (offset, read_record(values[offset])) for offset in range(first_offset, len(values))
        ]
