"""The engine stands on the private interface of one release; these notice when it moves."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest
from sandbox_pools import JAVASCRIPT

from sandbox import InfraError, SandboxOptions, SandboxPool
from sandbox.guest import v8 as engine
from sandbox.host.zygote_client import ZygoteClient

V8, V8_BUILT = "14.4.258.23", date(2026, 2, 1)
ASK = "from py_mini_racer import MiniRacer; print(MiniRacer().v8_version)"
DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"


def test_the_pinned_release_is_installed() -> None:
    """`engine.py` was read against this one. After an upgrade read it again, then change this."""
    assert version("mini-racer") == "0.14.1"


def test_an_old_v8_has_a_signed_note() -> None:
    """It has known holes by then: somebody must have said why it is still this one."""
    # In a process of its own: an engine takes a process's signals and memory for itself.
    told = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert told.stdout.split("-")[0].strip() == V8
    age = date.today() - V8_BUILT
    notes = [each.read_text(encoding="utf-8") for each in DECISIONS.glob("*.md")]
    signed = [each for each in notes if f"V8 {V8}" in each and "signed off" in each.lower()]

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


@pytest.mark.parametrize(
    "flag",
    ["", "--jitless", "--disallow-code-generation", "--stack-size", "--enable-experimental"],
)
def test_what_v8_runs_without_is_refused(flag: str) -> None:
    """Whoever wants an engine is told; none is made. With all of them one is."""
    without = f"v8.FLAGS = [e for e in v8.FLAGS if not {flag!r} or not e.startswith({flag!r})]\n"

    assert loaded(without).startswith(flag or "made")


@pytest.mark.parametrize("flags", ["", "v8.FLAGS = [e for e in v8.FLAGS if e != '--jitless']\n"])
def test_where_the_process_that_is_tried_says_nothing_each_is_asked(flags: str) -> None:
    """It may have had no memory, or no time: nobody is refused for that, and none let through."""
    dies = "v8.prove, prove = lambda _: os._exit(1), v8.prove\n"
    again = "v8.prove = prove\n"

    assert loaded(flags + dies, again).startswith("--jitless" if flags else "made")


def loaded(before: str, after: str = "") -> str:
    """What becomes of an engine where this is done before V8 is loaded, and that after it."""
    script = (
        "import os, sys; sys.path[:0] = sys.argv[1:]\n"
        "from sandbox.guest import v8\n"
        f"{before}make = v8.load(None)\n{after}"
        "try: make(); print('made', flush=True)\n"
        "except v8.FlagsRefused as error: print(error, flush=True)\n"
        "os._exit(0)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, *sys.path],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return found.stdout
