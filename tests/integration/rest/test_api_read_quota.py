"""Who has read too much reads no more until the hour is over; all else goes on."""

from __future__ import annotations

from api_builders import Caller, Served
from quota_builders import given, told

from api.app import SERVICES
from servioticy.storage.quotas import PostgresQuotas

__all__ = ["given"]


def read(served: Served, so: str, seconds: float) -> int:
    """Let the tenant of this Service Object have read so much, and store it."""
    tenant = served.platform.stream(so).tenant
    quotas = served.app.extensions[SERVICES].quotas
    quotas.has_read(tenant, seconds)
    quotas.reading.settle()
    return tenant


def test_reads_end_at_the_border_and_what_tells_so_does_not(
    served: Served, alice: Caller, bob: Caller, given: PostgresQuotas
) -> None:
    so, theirs = alice.create(), bob.create()
    carol = served.tenant("carol")
    given.give("carol", "read-seconds", 2)
    own = carol.create()
    quotas = served.app.extensions[SERVICES].quotas
    tenant = read(served, own, 1.5)
    assert carol.ask("GET", f"/{own}").status_code == 200

    quotas.has_read(tenant, 2.0)

    for method, path in (("GET", f"/{own}"), ("POST", f"/{own}/streams/a/search")):
        name, policy, rate = told(carol.ask(method, path, json={} if method == "POST" else None))
        assert (name, policy) == ("read-seconds", '"read-seconds";q=2;w=3600')
        assert rate.startswith('"read-seconds";r=0;t=')
    shown = {each["name"]: each for each in carol.ask("GET", "/quotas").get_json()["quotas"]}
    assert shown["read-seconds"]["used"] >= 2
    assert 0 < shown["read-seconds"]["retryAfter"] <= 3600
    assert carol.ask("GET", "/usage").status_code == 200
    assert carol.put(own).status_code == 202
    assert [
        each.ask("GET", f"/{so}").status_code for each, so in ((alice, so), (bob, theirs))
    ] == [200] * 2


def test_what_was_read_is_on_the_account_and_another_process_knows_it(
    served: Served, alice: Caller, given: PostgresQuotas
) -> None:
    so = alice.create()
    path = "/usage?from=0&to=9007199254740991"
    tenant = read(served, so, 1.25)
    read(served, so, 1.0)

    ((used, hours),) = served.platform.database.rows(
        "SELECT used_amounts.read_us, (SELECT sum(read_us) FROM usage_hours WHERE tenant_id = %s)"
        "  FROM used_amounts WHERE tenant_id = %s",
        (tenant, tenant),
    )

    assert (used, hours) == (2_250_000, 2_250_000)
    assert alice.ask("GET", path).get_json()["data"][0]["readSeconds"] == 2.25
