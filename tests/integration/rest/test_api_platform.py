"""Who sees the state of the whole platform."""

from __future__ import annotations

from api_builders import Caller, Served


def test_admins_of_the_tenant_that_is_named_and_nobody_else(served: Served, alice: Caller) -> None:
    operator = served.tenant("examples")
    told = operator.ask("GET", "/platform")
    assert told.status_code == 200, told.text
    assert {each["name"] for each in told.get_json()["programs"]} >= {"api", "pipeline"}

    answer = alice.ask("GET", "/platform")
    assert (answer.status_code, "operator_tenant" in answer.text) == (403, True)
    assert "programs" not in answer.get_json()
    made = operator.ask("POST", "/tokens", json={"name": "reader", "rights": ["list", "read"]})
    reader = Caller(operator.client, made.get_json()["token"])
    assert reader.ask("GET", "/platform").status_code == 403
