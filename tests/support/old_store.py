"""A store as the release before borders between tenants had written it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servioticy.storage.database import Database

ONE: Mapping[str, Any] = {"a": {"channels": {}}}


class Old:
    """Writes what the release before had written."""

    def __init__(self, owner: Database) -> None:
        self._owner = owner

    def rows(self, sql: str, **values: Any) -> list[Any]:
        return self._owner.rows(sql, values)

    def create(
        self,
        tenant: int,
        id_: str,
        component: str,
        reads: Sequence[tuple[str, str]] = (),
        *,
        active: int | None = 1,
        public: bool = False,
        partition: int = 0,
        change: int = 1,
        streams: Mapping[str, Any] = ONE,
    ) -> None:
        """A Service Object with these streams, and a group for each stream that it reads."""
        document: dict[str, Any] = {
            "streams": streams,
            "public": "true" if public else "false",
            "groups": _groups(reads),
        }
        self.rows(
            """
            INSERT INTO service_objects (id, tenant_id, public, created_at, updated_at, version,
                                         component, route_partition, owner_partition,
                                         active_version, active_change)
            VALUES (%(id)s, %(tenant)s, %(public)s, 0, 0, 1, %(component)s, %(partition)s,
                    %(partition)s, %(active)s, %(change)s);
            INSERT INTO definitions (service_object, version, tenant_id, document, created_at,
                                     bytes, named_by)
            VALUES (%(id)s, 1, %(tenant)s, %(document)s, 0, 9, 1);
            INSERT INTO streams (tenant_id, service_object, name)
            SELECT %(tenant)s, %(id)s, name FROM unnest(%(names)s::text[]) AS name
            """,
            id=id_,
            tenant=tenant,
            public=public,
            component=component,
            partition=partition,
            active=active,
            change=change if active else 0,
            document=json.dumps(document),
            names=list(streams),
        )
        self._edges(tenant, id_, reads)

    def replace(
        self, id_: str, reads: Sequence[tuple[str, str]] = (), *, public: bool = False
    ) -> None:
        """Another document, which the pipeline has not come to yet."""
        ((tenant, version),) = self.rows(
            "UPDATE service_objects SET version = version + 1, public = %(public)s"
            " WHERE id = %(id)s RETURNING tenant_id, version",
            id=id_,
            public=public,
        )
        document: dict[str, Any] = {"streams": {"a": {"channels": {}}}, "groups": _groups(reads)}
        self.rows(
            "INSERT INTO definitions (service_object, version, tenant_id, document, created_at,"
            " bytes, named_by) VALUES (%(id)s, %(version)s, %(tenant)s, %(document)s, 0, 9, 1)",
            id=id_,
            version=version,
            tenant=tenant,
            document=json.dumps(document),
        )
        self.rows("DELETE FROM graph_edges WHERE reader = %(id)s", id=id_)
        self._edges(tenant, id_, reads)

    def _edges(self, tenant: int, id_: str, reads: Sequence[tuple[str, str]]) -> None:
        for number, (source, stream) in enumerate(reads):
            self.rows(
                "INSERT INTO graph_edges (tenant_id, reader, group_name, stream_id)"
                " SELECT %(tenant)s, %(id)s, %(group)s, id FROM streams"
                " WHERE service_object = %(source)s AND name = %(stream)s",
                tenant=tenant,
                id=id_,
                group=f"g{number}",
                source=source,
                stream=stream,
            )

    def update(
        self,
        id_: str,
        timestamp: int,
        offset: int,
        stream: str = "a",
        position: int = 0,
        text: str = "",
    ) -> None:
        self.rows(
            "INSERT INTO updates (tenant_id, stream_id, timestamp, document, version,"
            " log_partition, log_offset, log_position)"
            " SELECT tenant_id, stored_as, %(at)s, %(text)s, 1, 0, %(offset)s, %(position)s"
            " FROM streams WHERE service_object = %(id)s AND name = %(stream)s",
            id=id_,
            at=timestamp,
            text=text or f'{{"v":{timestamp}}}',
            offset=offset,
            stream=stream,
            position=position,
        )

    def grant(self, id_: str, service_object: str, grantee: int, *, active: bool) -> None:
        self.rows(
            "INSERT INTO grants (id, tenant_id, service_object, stream, grantee, derived_only,"
            " created_at, active) SELECT %(id)s, tenant_id, id, 'a', %(grantee)s, true, 0,"
            " %(active)s FROM service_objects WHERE id = %(service_object)s",
            id=id_,
            service_object=service_object,
            grantee=grantee,
            active=active,
        )

    def pending(self, text: str) -> None:
        self.rows(
            "INSERT INTO pending_changes (tenant_id, change) VALUES (1, %(text)s)", text=text
        )


def _groups(reads: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {
        f"g{number}": {"soIds": [source], "stream": stream}
        for number, (source, stream) in enumerate(reads)
    }
