"""Who may do what over a broker of the operator's own, and what is said where it is refused."""

from __future__ import annotations

import logging

import orjson
import pytest
import waiting
from support.running_bridge import ALICE, BOB, World
from support.running_broker import an_update

from servioticy.domain.model import StreamRef


def test_what_goes_out_goes_below_the_prefix_of_its_tenant(bridged: World) -> None:
    """A tenant may choose the topic of a subscription, but not whose it is."""
    other = f"{bridged.prefix}b"
    with bridged.connected({bridged.prefix: ALICE, other: BOB}), bridged.device() as device:
        device.subscribe(f"{bridged.prefix}/#", 1)
        device.subscribe(f"{other}/#", 1)
        told = bridged.give(other, "updates", "pump", "flow")
        device.received(1)
        bridged.give("news", tenant=2)
        received = device.received(2)
        waiting.until(lambda: told == [True])

    topics = [f"{bridged.prefix}/{other}/updates/pump/flow", f"{other}/news"]
    assert [topic for topic, _ in received] == topics
    assert not bridged.broker.api.asked


def test_what_comes_in_is_done_in_the_name_of_its_prefix(bridged: World) -> None:
    """Though it shows another tenant's token."""
    other = f"{bridged.prefix}b"
    request = {"meta": {"authorization": BOB, "method": "GET", "url": "/"}}
    with bridged.connected({bridged.prefix: ALICE, other: BOB}), bridged.device() as device:
        device.subscribe(f"{bridged.prefix}/errors", 1)
        device.publish(f"{bridged.prefix}/{BOB}/from", orjson.dumps(request), 1)
        ((_, told),) = device.received(1)
        assert not bridged.broker.api.asked
        device.publish(f"{other}/updates/pump/flow", an_update(1), 1)
        waiting.until(lambda: bridged.broker.log.came)

    assert orjson.loads(told)["status"] == 403
    assert bridged.broker.catalog.asked[-1] == BOB


@pytest.mark.parametrize("bridged", [5], indirect=True)
def test_a_broker_of_one_tenant_needs_no_prefix(bridged: World) -> None:
    """The original's clients need not change there."""
    came = bridged.broker.log.came
    with bridged.connected({"": ALICE}), bridged.device() as device:
        device.subscribe("news", 1)
        device.publish("updates/pump/flow", an_update(3), 1)
        bridged.give("news")
        assert device.received(1) == [("news", b"{}")]
        waiting.until(lambda: came)

    assert came == [(StreamRef("pump", "flow"), an_update(3))]


@pytest.mark.parametrize("bridged", [5], indirect=True)
def test_who_stands_by_is_not_connected(bridged: World) -> None:
    """Of several processes one delivers to a tenant; another would get half of what comes."""
    ours: set[int] = set()
    tenants = {bridged.prefix: ALICE, f"{bridged.prefix}b": BOB}
    with bridged.bridges(tenants, is_ours=lambda tenant: tenant in ours) as bridges:
        ours.update((1, 2))
        waiting.until(lambda: bridges.connected == 2)
        ours.discard(2)
        waiting.until(lambda: bridges.connected == 1)
        ours.clear()
        waiting.until(lambda: not bridges.connected)


def test_a_token_that_ends_costs_no_message(bridged: World) -> None:
    token = f"token-1-{bridged.prefix}"
    came = bridged.broker.log.came
    with bridged.connected({bridged.prefix: token}) as bridges, bridged.device() as device:
        bridged.broker.catalog.revoke(token)
        waiting.until(lambda: not bridges.connected)
        device.acknowledged(device.publish(f"{bridged.prefix}/updates/pump/flow", an_update(1), 1))
        assert not came
        bridged.broker.catalog.revoked.clear()
        waiting.until(lambda: came)

    assert came == [(StreamRef("pump", "flow"), an_update(1))]


def test_a_token_refused_in_the_middle_costs_no_message(bridged: World) -> None:
    """The store knows of it before we are told."""
    token, came = f"token-1-{bridged.prefix}", bridged.broker.log.came
    with bridged.connected({bridged.prefix: token}) as bridges, bridged.device() as device:
        bridged.broker.catalog.revoked.add(token)
        device.publish(f"{bridged.prefix}/updates/pump/flow", an_update(1), 1)
        waiting.until(lambda: not bridges.connected)
        bridged.broker.catalog.revoked.clear()
        waiting.until(lambda: came)

    assert came == [(StreamRef("pump", "flow"), an_update(1))]


def test_a_wrong_password_is_told_with_what_to_do(
    bridged: World, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "servioticy.delivery"),
        bridged.bridges(password="another secret"),
    ):
        waiting.until(lambda: any(hasattr(each, "why") for each in caplog.records))

    if bridged.version == 5:
        assert any("bridge_user with bridge_password" in str(vars(e)) for e in caplog.records)
    assert "another secret" not in str([vars(each) for each in caplog.records])


def test_a_token_of_nobody_is_told_and_the_others_are_connected(
    bridged: World, caplog: pytest.LogCaptureFixture
) -> None:
    tenants = {bridged.prefix: ALICE, f"{bridged.prefix}x": "no token"}
    with (
        caplog.at_level(logging.WARNING, "servioticy.delivery"),
        bridged.bridges(tenants) as found,
    ):
        waiting.until(lambda: "bridge_token_refused" in caplog.text)
        waiting.until(lambda: found.connected == 1)

    assert "no token" not in str([vars(each) for each in caplog.records])


@pytest.mark.parametrize("bridged", [5], indirect=True)
def test_tls_is_believed_only_with_who_vouches_for_it(
    bridged: World, caplog: pytest.LogCaptureFixture
) -> None:
    folder, url = bridged.external.certificates, f"mqtts://127.0.0.1:{bridged.external.tls_port}"
    if folder is None:
        pytest.skip("no openssl here to make a certificate")
    with (
        caplog.at_level(logging.WARNING, "servioticy.delivery"),
        bridged.bridges(url=url) as found,
    ):
        waiting.until(lambda: any(hasattr(each, "why") for each in caplog.records))
        assert found.connected == 0
    with bridged.bridges(url=url, ca=str(folder / "certificate.pem")) as found:
        waiting.until(lambda: found.connected == 1)

    assert any("bridge_ca" in getattr(each, "why", "") for each in caplog.records)
