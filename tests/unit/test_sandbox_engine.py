"""The engine stands on the private interface of one release; these notice when it moves."""

from __future__ import annotations

import re
from datetime import date, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest
from sandbox_pools import JAVASCRIPT

from sandbox import InfraError, SandboxOptions, SandboxPool
from sandbox.guest import v8 as engine
from sandbox.host.zygote_client import ZygoteClient

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
    zygote = ZygoteClient("v8", JAVASCRIPT, 60)

    with pytest.raises(InfraError):
        zygote.spawn()
    zygote.close()


@pytest.mark.parametrize(("engine", "lack"), [("v8", "acorn.js"), ("quickjs", "quickjs.wasm")])
def test_a_zygote_without_its_files_names_them(tmp_path: Path, engine: str, lack: str) -> None:
    """A cache that somebody has emptied is nobody's fault either."""
    if engine == "quickjs":
        (tmp_path / "acorn.js").touch()
    pool = SandboxPool(tmp_path, SandboxOptions(engine=engine))

    with pytest.raises(InfraError, match=f"^{re.escape(lack)} missing in"):
        pool.layers()


def test_every_flag_is_claimed_once() -> None:
    """V8 drops all flags after one it does not know; prove() relies on the last one."""
    assert len(set(engine.FLAGS)) == len(engine.FLAGS)
    assert engine.FLAGS[-1].startswith("--enable-experimental-regexp-engine")
