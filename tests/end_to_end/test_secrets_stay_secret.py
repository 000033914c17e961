"""What is secret stands in no log of the platform, whatever fails."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import threading
from collections.abc import Iterator
from typing import Any

import psycopg2
import psycopg2.errors
import pytest
from mqtt_client import MqttClient
from running_platform import RunningPlatform
from waiting import until

from servioticy.embedded.folder import read_run
from servioticy.storage.database import Database
from servioticy.storage.roles import Role, give_logins

DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}


@contextlib.contextmanager
def refusing(owner: Database, *tables: str) -> Iterator[None]:
    """Let Postgres store no new row in these tables; it would tell which rows those were."""
    for each in tables:
        owner.rows(f"ALTER TABLE {each} ADD CONSTRAINT no_more CHECK (false) NOT VALID")
    try:
        yield
    finally:
        for each in tables:
            owner.rows(f"ALTER TABLE {each} DROP CONSTRAINT no_more")


CANCEL = (
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND query ~ 'INSERT INTO subscriptions'"
)


@contextlib.contextmanager
def cancelling(owner: Database) -> Iterator[None]:
    """Have a statement that stores a subscription ended by Postgres, as if it took too long."""
    with owner.transaction():
        owner.rows("LOCK TABLE subscriptions")
        thread = threading.Thread(target=until, args=[lambda: owner.rows(CANCEL)])
        thread.start()
        yield
        thread.join()


@pytest.fixture
def owner(platform: RunningPlatform) -> Iterator[Database]:
    found = Database((read_run(platform.data) or {})["dsn"])
    yield found
    found.close()


def asked(platform: RunningPlatform, path: str, body: Any, expected: int = 201) -> Any:
    status, _, answer = platform.request("POST", path, body)
    assert status == expected, answer
    return json.loads(answer)


def a_subscription() -> dict[str, str]:
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    return {"callback": "http", "destination": "http://127.0.0.1:1/", "secret": secret}


def test_no_log_tells_a_secret(platform: RunningPlatform, owner: Database) -> None:
    """Statements go to Postgres with their values, and it writes those that fail to its log."""
    so = platform.create(DEVICE)
    callbacks = [a_subscription() for _ in range(3)]
    password, wrong = secrets.token_hex(), secrets.token_hex()
    subscriptions = f"/{so}/streams/data/subscriptions"

    asked(platform, subscriptions, callbacks[0])
    token = asked(platform, "/tokens", {"name": "n"})["token"]
    code = asked(platform, f"/{so}/claim-codes", {"uses": 2})["claimCodes"][0]["code"]
    claim = {"code": code, "device": "lamp", "key": secrets.token_hex()}
    device = asked(platform, "/claims", claim)["api_token"]
    late = {**claim, "device": "late", "key": secrets.token_hex()}
    with refusing(owner, "subscriptions", "tokens", "claims"):
        asked(platform, subscriptions, callbacks[1], expected=500)
        asked(platform, "/tokens", {"name": "n"}, expected=500)
        asked(platform, "/claims", late, expected=500)
    with cancelling(owner):
        asked(platform, subscriptions, callbacks[2], expected=503)
    with pytest.raises(psycopg2.errors.CheckViolation) as told, refusing(owner, "tenants"):
        owner.rows("INSERT INTO tenants (name) VALUES (%(name)s)", {"name": wrong})
    with pytest.raises(psycopg2.Error), owner.transaction():
        owner.rows("SET LOCAL ROLE servioticy_api")
        give_logins(owner, {Role.PIPELINE: password})
    for each in (token, device):
        with MqttClient(platform.mqtt_port, each) as client:
            assert client.subscribe(f"updates/{so}/data")

    logs = {each.name: each for each in (platform.data / "logs").iterdir()}
    assert {"api.log", "delivery.log", "postgres.log"} <= logs.keys()
    until(lambda: logs["api.log"].read_text().count("request_failed") >= 3)
    until(lambda: "permission denied to alter role" in logs["postgres.log"].read_text())
    hidden = [token, device, code, claim["key"], late["key"], password, wrong]
    hidden += [each["secret"] for each in callbacks]
    for name, log in {**logs, "up.log": platform.data.parent / "up.log"}.items():
        text = log.read_text("utf-8", "replace")
        assert not [each for each in hidden if each in text], name
    assert wrong not in str(told.value)
