"""Every query about a tenant's rows names the tenant, or says here why it cannot.

Row level security would hide other rows anyhow; a query that leaves that to it alone would be
wrong for whoever sees all, and slow.
"""

from __future__ import annotations

import re
from importlib import resources

import pytest
from told_schema import told_schema

from servioticy.storage.queries import queries
from servioticy.storage.roles import is_between_tenants

SQL = resources.files("servioticy.storage") / "sql"
NO_QUERIES = {"schema", "migrations", "roles"}

OF_THE_PLATFORM = {"tenants", "progress", "forwarded", "crossings", "log_identity", "log_losses"}
OF_THE_PLATFORM |= {"retention", "measurements", "console_keys"}
"""Tables without a tenant in each row."""

WHO = "finds out whose it is, or tells 401 from 404: before that there is no tenant to name"
READABLE = "what is granted is others' to read: the view `stream_readers` names who may"
GRAPH = "the stream graph reaches from tenant to tenant; who asks decides what of it is shown"
CHANGES = "changes are made one after the other over the whole platform"
PIPELINE = "a partition's task computes for all tenants; what it is told comes from the log"
DELIVERY = "one process delivers to the subscriptions of all tenants, each by its id"
TOGETHER = "updates that came together are of many tenants, each found out to be the sender's"
FLEETS = "one process at a time works for all tenants, each job and each group by its tenant"
OLD = "what is old goes, whosesoever it is"
BACKUP = "a back-up has all rows, whosesoever they are"
OPERATOR = "who operates the platform is told which tenants and composites take most"
BALANCE = "partitions are everybody's; who operates the platform is told what they take"
LOSS = "a loss of the log is accepted for a whole partition, whoever has records in it"

FUNCTIONS = (
    "whose atoms are taken next is decided by what waits for all, and what is left over goes"
)

EXCEPTIONS: dict[str, tuple[set[str], str]] = {
    "tenants.tenant_of_token": ({"tokens"}, WHO),
    "claims.code": ({"claim_codes", "service_objects"}, WHO),
    "addresses.address": ({"tokens", "service_objects", "streams"}, WHO),
    "addresses.addresses": ({"tokens", "service_objects", "streams"}, WHO),
    "addresses.addresses_of_members": ({"service_objects", "streams", "members"}, WHO),
    "console_sessions.session": ({"console_sessions"}, WHO),
    "console_sessions.was_used": ({"console_sign_ins"}, WHO),
    "console_sessions.claim": ({"console_sessions"}, WHO),
    "console_sessions.renew": ({"console_sessions"}, WHO),
    "console_sessions.keep_as_it_is": ({"console_sessions"}, WHO),
    "console_sessions.end": ({"console_sessions"}, WHO),
    "subscriptions.subscription": (
        {"subscriptions", "streams", "service_objects", "cursors"},
        WHO,
    ),
    # One stream's: of the subscriptions to it each belongs to another tenant, perhaps.
    "subscriptions.of_stream": ({"subscriptions", "cursors"}, "its stream is the tenant's"),
    "callback_tests.channels": ({"service_objects", "streams", "definitions"}, READABLE),
    "last_updates.readable": ({"service_objects", "streams"}, READABLE),
    "stream_graph.nodes": ({"service_objects", "streams", "grants"}, GRAPH),
    "stream_graph.readers": ({"streams", "graph_edges", "service_objects"}, GRAPH),
    "stream_graph.sources_of": ({"streams", "graph_edges"}, GRAPH),
    "stream_graph.readers_of": ({"streams", "graph_edges"}, GRAPH),
    "stream_graph.grants": ({"grants"}, GRAPH),
    "stream_graph.related": ({"service_objects"}, GRAPH),
    "readings.outside_edges": ({"streams", "service_objects"}, GRAPH),
    "readings.still_moving": ({"streams", "service_objects"}, GRAPH),
    "routes.routes": ({"service_objects"}, TOGETHER),
    "change_store.load": ({"service_objects"}, CHANGES),
    "change_store.leave": ({"service_objects"}, CHANGES),
    "change_store.route": ({"service_objects"}, CHANGES),
    "loads.partitions": ({"service_objects", "usage_hours"}, BALANCE),
    "loads.components": ({"usage_hours"}, BALANCE),
    "loads.members": ({"service_objects", "definitions", "usage_hours"}, BALANCE),
    "loads.edges": ({"service_objects", "streams", "graph_edges"}, BALANCE),
    # The edges are the tenant's; the streams they lead to may be public ones of others.
    "change_store.add_edges": ({"streams"}, GRAPH),
    "change_store.expired": ({"grants", "service_objects"}, CHANGES),
    "change_store.overdue": ({"grants", "service_objects"}, CHANGES),
    "change_store.pending_changes": ({"pending_changes"}, CHANGES),
    "change_store.drop_pending_changes": ({"pending_changes"}, CHANGES),
    "actuations.news": ({"actuations"}, DELIVERY),
    "actuations.calling": ({"actuations", "actuation_callbacks"}, DELIVERY),
    "cursors.changes": (
        {"cursors", "subscriptions", "streams", "service_objects", "acting_streams", "grants"},
        DELIVERY,
    ),
    "cursors.acting": ({"streams", "acting_streams"}, DELIVERY),
    "cursors.store_acting": ({"acting_streams"}, DELIVERY),
    "cursors.subscriptions": ({"cursors", "subscriptions", "streams"}, DELIVERY),
    "cursors.streams": ({"streams", "service_objects"}, DELIVERY),
    "sources.newest_stream": ({"streams"}, "a number, with nothing of whom it is"),
    "sources.streams_of": ({"streams", "service_objects"}, READABLE),
    # One Service Object's: of the subscriptions to it each belongs to another tenant, perhaps.
    "subscriptions.of_source": ({"subscriptions", "cursors"}, "its object is the tenant's"),
    "cursors.store": ({"cursors"}, DELIVERY),
    "callback_test_runs.take": ({"callback_tests", "subscriptions", "streams"}, DELIVERY),
    "audit.forget": ({"audit"}, FLEETS),
    "backfills.unfinished": ({"jobs", "backfills"}, FLEETS),
    "jobs.next": ({"jobs", "template_objects"}, FLEETS),
    "dynamic_groups.spread": ({"membership_marks", "dynamic_groups"}, FLEETS),
    "dynamic_groups.next_look": ({"group_looks"}, FLEETS),
    "kept_entries.kept": ({"kept_entries"}, PIPELINE),
    "partition.component": ({"service_objects", "definitions"}, PIPELINE),
    "partition.components": ({"service_objects", "definitions"}, PIPELINE),
    "partition.service_objects": ({"service_objects", "definitions"}, PIPELINE),
    "partition.changed": ({"service_objects", "definitions", "grants"}, PIPELINE),
    "effects.allow": ({"grants"}, PIPELINE),
    "effects.revoke": ({"grants"}, PIPELINE),
    "swapping.swapping": ({"jobs", "backfills"}, PIPELINE),
    "swapping.why_not": ({"backfills", "service_objects", "streams"}, PIPELINE),
    "swapping.drop_slice": ({"backfills", "updates"}, PIPELINE),
    "swapping.fill_slice": ({"backfilled"}, PIPELINE),
    "swapping.note_filled": ({"searched_streams"}, PIPELINE),
    "swapping.drop_filled_blocks": ({"search_blocks"}, PIPELINE),
    "swapping.end_swap": ({"jobs"}, PIPELINE),
    "swapping.clear_slice": ({"jobs", "backfilled"}, PIPELINE),
    "swapping.in_vain": ({"jobs", "backfills"}, PIPELINE),
    "partition.owner": ({"service_objects"}, PIPELINE),
    "put_off.begins": ({"put_off"}, PIPELINE),
    "partition.owners": ({"service_objects"}, PIPELINE),
    "partition.erases": ({"streams"}, PIPELINE),
    "partition.last_updates": ({"updates", "states"}, PIPELINE),
    "past.single": ({"updates"}, PIPELINE),
    "past.newest": ({"updates"}, PIPELINE),
    "past.documents": ({"updates"}, PIPELINE),
    "past.span": ({"updates"}, PIPELINE),
    "partition.left_to_do": ({"purge", "kept_entries"}, PIPELINE),
    "partition.note_late": ({"searched_streams"}, PIPELINE),
    "partition.drop_blocks": ({"search_blocks"}, PIPELINE),
    "effects.activate_all": ({"service_objects"}, PIPELINE),
    "effects.activate": ({"service_objects"}, PIPELINE),
    "effects.release": ({"service_objects"}, PIPELINE),
    "effects.delete": ({"service_objects"}, PIPELINE),
    "effects.erase": ({"streams", "states", "verdicts", "usage"}, PIPELINE),
    "programs.found": ({"operator_versions", "operator_grants"}, PIPELINE),
    # Whose it is, by number: whether it may be used was looked at before.
    "programs.archive": ({"operator_versions"}, PIPELINE),
    "operator_runs.forget": ({"operator_runs"}, PIPELINE),
    "purge.next_purge": ({"purge"}, PIPELINE),
    "retention.forgetful": ({"streams"}, PIPELINE),
    # What others wished or read of a stream that is gone.
    "purge.purge_subscriptions_to": ({"subscriptions"}, PIPELINE),
    "purge.purge_subscriptions_of": ({"subscriptions"}, PIPELINE),
    "purge.purge_edges_from": ({"graph_edges"}, PIPELINE),
    "partition.not_acknowledged": ({"updates", "superseded"}, PIPELINE),
    "put_off.take_up": ({"put_off"}, PIPELINE),
    "put_off.forget_emitted": ({"put_off"}, PIPELINE),
    "put_off.waiting": ({"put_off"}, PIPELINE),
    "put_off.taken_up": ({"put_off"}, PIPELINE),
    "partition.forget_superseded": ({"superseded", "put_off"}, PIPELINE),
    "partition.used_up": ({"used_amounts", "stored_amounts", "quotas"}, PIPELINE),
    "replaced.replaced": ({"updates", "states"}, PIPELINE),
    "replaced.kept": ({"states"}, PIPELINE),
    "partition.grant": ({"grants"}, PIPELINE),
    "borders.name_inputs": ({"inputs_from_outside", "service_objects", "updates"}, PIPELINE),
    "borders.forget_inputs": ({"inputs_from_outside"}, PIPELINE),
    "borders.forget_readers": ({"outside_readers"}, PIPELINE),
    "borders.forget_marks": ({"inputs_from_outside", "marks", "put_off"}, PIPELINE),
    "borders.forget_unread_marks": ({"inputs_from_outside", "marks", "put_off"}, PIPELINE),
    "borders.begun_behind": ({"inputs_from_outside"}, PIPELINE),
    "borders.awaiting": ({"inputs_from_outside"}, PIPELINE),
    "borders.free_held": ({"put_off", "inputs_from_outside"}, PIPELINE),
    "borders.read": ({"service_objects"}, PIPELINE),
    "borders.read_no_more": ({"service_objects", "outside_readers"}, PIPELINE),
    "borders.begin_moved": ({"inputs_from_outside"}, PIPELINE),
    "borders.end_arrived": ({"inputs_from_outside"}, PIPELINE),
    "borders.store_marks": ({"service_objects"}, PIPELINE),
    "borders.forget_crossings": ({"put_off"}, PIPELINE),
    "borders.inputs": ({"inputs_from_outside"}, PIPELINE),
    "borders.read_in": ({"outside_readers"}, PIPELINE),
    "borders.marks": ({"marks"}, PIPELINE),
    "borders.fed": ({"inputs_from_outside", "service_objects"}, PIPELINE),
    "borders.last_inputs": ({"inputs_from_outside"}, PIPELINE),
    "borders.outside_readers": ({"service_objects", "outside_readers"}, PIPELINE),
    "borders.reading": ({"service_objects", "outside_readers"}, PIPELINE),
    "quotas.of_all": ({"quotas"}, DELIVERY),
    "quotas.used_up": ({"used_amounts", "quotas"}, DELIVERY),
    "quotas.unset": ({"quotas"}, "an operator names the tenant by its name"),
    "quotas.of_tenant": ({"quotas"}, "an operator names the tenant by its name"),
    "departures.usage_of_others": ({"usage_hours"}, "what others used of it is theirs to pay"),
    "departures.received_grants": ({"grants"}, "what others granted to it goes with it"),
    "tokens.forget": ({"tokens"}, "what has ended goes, whosesoever it was"),
    "left_behind.objects": ({"service_objects", "streams", "definitions", "tokens"}, OLD),
    "left_behind.answers": ({"idempotency"}, OLD),
    "left_behind.claim_codes": ({"claim_codes", "service_objects"}, OLD),
    "left_behind.templates": ({"templates", "template_objects"}, OLD),
    "gathered.held": ({"workflow_objects"}, FUNCTIONS),
    "gathered.lost": ({"workflow_objects", "atoms", "dead_atoms"}, FUNCTIONS),
    "atoms.waiting": ({"atoms", "atom_counts"}, FUNCTIONS),
    "atoms.due": ({"atoms"}, FUNCTIONS),
    "atoms.note": ({"atoms"}, "what was done for all is noted together"),
    "atoms.elsewhere": ({"workflow_instances"}, FUNCTIONS),
    "atoms.renew": ({"workflow_instances"}, FUNCTIONS),
    "atoms.end_old": ({"workflow_instances"}, FUNCTIONS),
    "atoms.forget_counts": ({"atom_counts", "workflow_versions"}, FUNCTIONS),
    "workflows.forget": ({"dead_atoms"}, OLD),
    "workflows.forget_collected": ({"collected_atoms"}, OLD),
    "workflows.forget_hours": ({"workflow_hours"}, OLD),
    "left_behind.dead_deliveries": ({"dead_deliveries"}, OLD),
    "platform.slowest": ({"usage_hours"}, OPERATOR),
    "usage.forget": ({"usage_hours"}, "what is old goes, whosesoever it is"),
    "usage.forget_grants": ({"ended_grants"}, "what is old goes, whosesoever it is"),
    "backup.copy_stored_updates": ({"stored_updates"}, BACKUP),
    "backup.copy_superseded": ({"superseded"}, BACKUP),
    "backup.copy_put_off": ({"put_off"}, BACKUP),
    "backup.copy_marks": ({"marks"}, BACKUP),
    "backup.copy_inputs_from_outside": ({"inputs_from_outside"}, BACKUP),
    "backup.streams_of": ({"streams"}, BACKUP),
    "cursors.every": ({"cursors", "subscriptions"}, BACKUP),
    "cursors.every_acting": ({"acting_streams"}, BACKUP),
    "log.keep_unacknowledged": ({"updates", "superseded"}, LOSS),
    "log.forget_superseded": ({"superseded", "put_off"}, LOSS),
    "log.renumber_updates": ({"updates", "put_off"}, LOSS),
    "log.renumber_put_off": ({"put_off"}, LOSS),
    "log.renumber_superseded": ({"superseded"}, LOSS),
    "log.renumber_marks": ({"marks"}, LOSS),
    "log.renumber_places": ({"inputs_from_outside"}, LOSS),
    "log.crossed_put_off": ({"put_off"}, LOSS),
    "log.rewrite_put_off": ({"put_off"}, LOSS),
}


BETWEEN_TENANTS = {
    "grants.grantee": "a grant is to another one, who is named",
    "grants.listed": "a grant is seen by who has given it, and by whom it is for",
    "grants.grant": "a grant is seen by who has given it, and by whom it is for",
    "usage.summed": "a provider is told what others have used of its streams",
    "operators.grants": "a grant is to another one, whose name is told",
    "programs.found": "a program may be another one's, by a grant",
    "programs.archive": "a program may be another one's, by a grant",
    "programs.owners": "a document names the owner of a program that is another one's",
    "quotas.set": "an operator names the tenant by its name",
    "tenants.add_tenant": "of a tenant that is not there yet",
    "tenants.tenant_named": "an operator names it",
    "tenants.delete_tenant": "an operator names it",
    "departures.going": "which tenants are deleted",
    "departures.audit": "the audit log is nobody's to write",
    "departures.tenant": "the row of the tenant is not its own to remove",
    "platform.names": OPERATOR,
    "listings.search": READABLE,
    "dynamic_groups.members": READABLE,
}
"""Those that name a tenant and read what is not its own."""

FOR_ALL = {
    "put_off",
    "partition",
    "effects",
    "borders",
    "purge",
    "log",
    "cursors",
    "backup",
    "kept_entries",
}
FOR_ALL |= {"retention", "operator_runs", "past", "swapping", "replaced"}
"""Files of the pipeline, of delivery and of back-ups, which have roles of their own."""


def tables() -> set[str]:
    """The tables with a tenant in each row; `readers` is a view with one."""
    return {name for name, columns in every_table() if re.search(r"^ +tenant_id ", columns, re.M)}


def every_table() -> list[tuple[str, str]]:
    """Each table with the text of its columns."""
    schema = "\n".join(told_schema())
    return re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)[^;\n]*;", schema, re.DOTALL)


CONDITION = re.compile(
    r"\b(?:(\w+)\.)?tenant_id\s*=\s*(?:%\(tenants?\)s|(?:(\w+)\.tenant_id|tenant)\b)"
)
"""`table.tenant_id = %(tenant)s`, or that of another table; either may be without a name."""


def without_tenant(query: str, tables: set[str]) -> set[str]:
    """Those of the tables that the query reads or writes without saying whose rows."""
    text = re.sub(r"--[^\n]*", "", query)
    table = r"\s+(" + "|".join(sorted(tables)) + r")\b(?!\.)"
    inserts = re.findall(rf"\bINTO{table}\s*\(([^)]*)\)", text)
    found = {
        name for name, columns in inserts if "tenant_id" not in columns.replace(",", " ").split()
    }
    mentions = re.findall(rf"(?:\b(?:FROM|JOIN|UPDATE|USING)|,){table}(?:\s+AS\s+(\w+))?", text)
    called = [(alias or name, name) for name, alias in mentions]
    conditions = CONDITION.findall(text)
    known = _known(conditions, {name for name, _ in called})
    unknown = [table for name, table in called if name not in known]
    # A condition without a name is about one mention, in its own part of the query.
    unnamed = sum(not left for left, _ in conditions)
    return found | (set(unknown) if unnamed < len(unknown) else set())


def _known(conditions: list[tuple[str, str]], tables: set[str]) -> set[str]:
    """The names of which a condition says the tenant, directly or by another name."""
    known = {left for left, right in conditions if right not in tables} - {""}
    while True:
        pairs = [each for each in conditions if known & set(each)]
        more = known.union(*pairs) - {""}
        if more == known:
            return known
        known = more


def every_query() -> list[tuple[str, str]]:
    files = [each.name.removesuffix(".sql") for each in SQL.iterdir() if each.is_file()]
    return [
        (f"{file}.{name}", text)
        for file in sorted(set(files) - NO_QUERIES)
        for name, text in queries(file).items()
    ]


@pytest.mark.parametrize(("name", "text"), every_query(), ids=[name for name, _ in every_query()])
def test_it_names_the_tenant_or_stands_among_the_exceptions(name: str, text: str) -> None:
    """Whoever adds an exception has to say which; whoever mends one takes it out."""
    expected, _reason = EXCEPTIONS.get(name, (set(), ""))

    assert without_tenant(text, tables()) == expected


def test_exceptions_are_about_queries_that_exist() -> None:
    assert EXCEPTIONS.keys() <= {name for name, _ in every_query()}
    assert all(reason for _, reason in EXCEPTIONS.values())


def test_a_query_of_the_api_says_where_it_goes_between_tenants() -> None:
    """Nobody's rows are hidden from it then: whoever says so has to tell here why."""
    saying = {name for name, text in every_query() if is_between_tenants(text)}
    delivery = {
        *("callback_test_runs.take", "actuations.news", "actuations.calling", "quotas.of_all"),
        "quotas.used_up",
    }

    assert (
        saying
        == {
            name
            for name in EXCEPTIONS.keys() | BETWEEN_TENANTS.keys()
            if name.partition(".")[0] not in FOR_ALL
        }
        - delivery
    )
    assert all(BETWEEN_TENANTS.values())


def test_a_table_belongs_to_tenants_or_to_the_platform() -> None:
    """A new one has a tenant in each row; the others are few."""
    assert {name for name, _ in every_table()} - tables() == OF_THE_PLATFORM
    assert len(every_table()) == "\n".join(told_schema()).count("CREATE TABLE ")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT 1 FROM streams WHERE id = %(id)s", {"streams"}),
        ("SELECT 1 FROM streams WHERE id = 1 -- tenant_id = %(tenant)s", {"streams"}),
        ("SELECT tenant_id FROM streams", {"streams"}),
        ("SELECT 1 FROM streams WHERE tenant_id = %(tenant)s", set()),
        ("SELECT 1 FROM streams AS s WHERE s.tenant_id = %(tenant)s", set()),
        ("SELECT 1 FROM streams AS s WHERE other.tenant_id = %(tenant)s", {"streams"}),
        ("DELETE FROM updates USING streams WHERE streams.tenant_id = %(tenant)s", {"updates"}),
        (
            "SELECT 1 FROM streams JOIN updates ON updates.tenant_id = streams.tenant_id",
            {"streams", "updates"},
        ),
        (
            "SELECT 1 FROM streams JOIN updates ON updates.tenant_id = streams.tenant_id"
            " WHERE streams.tenant_id = %(tenant)s",
            set(),
        ),
        ("UPDATE streams SET name = 'x' WHERE id = 1", {"streams"}),
        ("UPDATE streams SET tenant_id = 5", {"streams"}),
        ("INSERT INTO streams (id) VALUES (1)", {"streams"}),
        ("INSERT INTO streams (id, tenant_id) VALUES (1, %(tenant)s)", set()),
        ("SELECT 1 FROM progress, streams", {"streams"}),
        (
            "SELECT (SELECT 1 FROM updates), 1 FROM streams WHERE tenant_id = %(tenant)s",
            {"updates", "streams"},
        ),
        ("SELECT 1 FROM progress WHERE log_partition = 1", set()),
    ],
)
def test_a_query_without_the_tenant_is_found(query: str, found: set[str]) -> None:
    assert without_tenant(query, tables()) == found
