"""The Sources in Postgres."""

from __future__ import annotations

from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.cursors import About, Source
from servioticy.storage.database import Database
from servioticy.storage.queries import queries


class PostgresSources:
    """What subscriptions can be about."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("sources")

    def newest_stream(self) -> int:
        """Return a number: streams that come to be later have larger ones."""
        ((newest,),) = self._database.rows(self._sql["newest_stream"])
        return int(newest)

    def about(self, tenant: int, source: Source, most: int) -> About:
        """Return what a tenant may read of a Service Object or a group: so many streams."""
        newest = self.newest_stream()
        if "\0" in source.service_object + (source.group or ""):
            return About({}, newest)
        values = {
            "tenant": tenant,
            "service_object": source.service_object,
            "group": source.group,
            "most": most,
        }
        rows = self._database.rows(self._sql["streams_of"], values)
        ends = [float(row[4]) for row in rows if row[4] is not None]
        streams = {StreamRef(*row[:2]): StreamKey(*row[2:4]) for row in rows}
        return About(streams, newest, min(ends, default=None))
