"""What streams have used, on the accounts of the present hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import UNNAMED, Use
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.used_grants import used_grants

STATEMENTS = (
    *("account", "account_processor", "account_watched", "account_stored", "account_in_all"),
)


def account(database: Database, uses: Sequence[Use]) -> None:
    """Add to the accounts of all that are still there. Raises Unavailable."""
    sql = queries("accounts")
    values = _values(_by_grant(database, uses))
    with database.transaction():
        for name in STATEMENTS:
            database.rows(sql[name], values)


def _by_grant(
    database: Database, uses: Sequence[Use]
) -> Mapping[tuple[int, StreamRef, int, str], Use]:
    """Return what was used by each grant, of all its streams together."""
    others = {(each.tenant, each.source) for each in uses if each.source != UNNAMED}
    grants = used_grants(database, others, deriving=True)
    found: dict[tuple[int, StreamRef, int, str], Use] = {}
    for each in uses:
        grant = grants.get((each.tenant, each.source), "")
        key = each.tenant, each.stream, each.provider, grant
        found[key] = _both(found[key], each) if key in found else each
    return found


def _both(use: Use, more: Use) -> Use:
    return use._replace(
        updates=use.updates + more.updates,
        rows=use.rows + more.rows,
        bytes=use.bytes + more.bytes,
        computations=Counter(use.computations) + Counter(more.computations),
        replaced=use.replaced + more.replaced,
        microseconds=use.microseconds + more.microseconds,
    )


def _values(uses: Mapping[tuple[int, StreamRef, int, str], Use]) -> Mapping[str, object]:
    tenants, streams, providers, _, updates, rows, sizes, computations, replaced, used = columns(
        list(uses.values()), 10
    )
    service_objects, names = columns(streams, 2)
    return {
        "tenants": numbers(tenants),
        "service_objects": list(service_objects),
        "streams": list(names),
        "providers": numbers(providers),
        "grants": [grant for *_, grant in uses],
        "updates_in": numbers(updates),
        "stored_rows": numbers(rows),
        "stored_bytes": numbers(sizes),
        "replaced_bytes": numbers(replaced),
        "processor_us": numbers(used),
        "times": numbers(sum(each.values()) for each in computations),
        "computations": [msgspec.json.encode(dict(each)).decode() for each in computations],
    }
