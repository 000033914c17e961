"""The engine stands on the private interface of one release; these notice when it moves."""

from __future__ import annotations

from datetime import date, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest

from sandbox import InfraError
from sandbox.guest import v8 as engine
from sandbox.host.zygote_client import Nursery

V8, V8_BUILT = "V8 14.4.258.23", date(2026, 2, 1)
DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"


def test_the_pinned_release_is_installed() -> None:
    """`engine.py` was read against this one. After an upgrade read it again, then change this."""
    assert version("mini-racer") == "0.14.1"


def test_an_old_v8_has_a_signed_note() -> None:
    """It has known holes by then: somebody must have said why it is still this one."""
    age = date.today() - V8_BUILT
    notes = [each.read_text(encoding="utf-8") for each in DECISIONS.glob("*.md")]
    signed = [each for each in notes if V8 in each and "signed off" in each.lower()]

    assert age < timedelta(days=120) or signed


def test_a_zygote_that_cannot_start_is_an_infra_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's fault, so it must not look like a tenant's."""
    monkeypatch.setattr("sys.executable", "/bin/false")
    nursery = Nursery(60)

    with pytest.raises(InfraError):
        nursery.spawn()
    nursery.close()


def test_every_flag_is_claimed_once() -> None:
    """V8 drops all flags after one it does not know; prove() relies on the last one."""
    assert len(set(engine.FLAGS)) == len(engine.FLAGS)
    assert engine.FLAGS[-1].startswith("--enable-experimental-regexp-engine")
