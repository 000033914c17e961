"""All twins over one state."""

from __future__ import annotations

from memory.change_store import MemoryChangeStore
from memory.history import MemoryHistory
from memory.log import MemoryLog
from memory.output import MemoryOutput
from memory.partition_store import MemoryPartitionStore
from memory.state import State
from memory.stream_graph import MemoryStreamGraph
from memory.tenants import MemoryTenants
from servioticy.changes import Changes
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.records import LogRecord


class MemoryPlatform:
    """The ports of one platform; `state` is what Postgres and Kafka would hold."""

    def __init__(self, partitions: int = 1) -> None:
        self.state = State(log=[[] for _ in range(partitions)])
        self.tenants = MemoryTenants(self.state)
        self.graph = MemoryStreamGraph(self.state)
        self.change_store = MemoryChangeStore(self.state)
        self.history = MemoryHistory(self.state)
        self.log = MemoryLog(self.state)
        self.changes = Changes(
            self.graph, self.change_store, self.log, sleep=lambda _seconds: None
        )

    def partition_store(self, argument_names: ArgumentNames) -> MemoryPartitionStore:
        """Return what a pipeline's task keeps."""
        return MemoryPartitionStore(self.state, argument_names)

    def output(self, partition: int) -> MemoryOutput:
        """Return where the task of this partition sends what it stored."""
        return MemoryOutput(self.state, partition)

    def records(self, partition: int, first_offset: int = 0) -> list[tuple[int, LogRecord]]:
        """Return the records of a partition from an offset on, each with its offset."""
        return self.log.records(partition, first_offset)
