"""Logs of a program that never stops writing."""

from __future__ import annotations

import pytest
from supervised_programs import a_program, running

from servioticy.supervisor import rotation

__all__ = ["running"]


def test_a_log_is_put_aside_while_it_is_written(running, tmp_path, monkeypatch) -> None:
    """The program is not asked: it goes on in the same file. So much is kept, and what
    comes until it is looked at: forty lines, where a busy machine is a fifth of a second late."""
    limit, line = 20_000, 1000
    monkeypatch.setattr(rotation, "LOG_LIMIT", limit)
    code = (
        "import sys, time\n"
        "while True: sys.stderr.write('x' * 999 + '\\n'); sys.stderr.flush(); time.sleep(0.005)"
    )
    run = running(a_program("one", code))
    run.supervisor.start()
    (log,) = tmp_path.rglob("one.log")

    run.until(lambda: log.with_name("one.log.3").exists())
    run.until(lambda: 0 < log.stat().st_size < limit)

    assert {each.name for each in log.parent.glob("one.log*")} == {
        *("one.log", "one.log.1", "one.log.2", "one.log.3")
    }
    assert all(each.stat().st_size <= limit + 40 * line for each in log.parent.glob("one.log.*"))


def test_of_what_comes_too_fast_the_newest_is_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(rotation, "LOG_LIMIT", 100)
    log = tmp_path / "one.log"
    log.write_bytes(b"a" * 1000 + b"b" * 100)

    assert rotation.rotate(log)
    assert not rotation.rotate(log)
    assert (tmp_path / "one.log.1").read_bytes() == b"b" * 100
    assert log.read_bytes() == b""


@pytest.mark.parametrize("size", [0, 100])
def test_a_small_log_stays(tmp_path, monkeypatch, size: int) -> None:
    monkeypatch.setattr(rotation, "LOG_LIMIT", 100)
    log = tmp_path / "one.log"
    log.write_bytes(b"a" * size)

    assert not rotation.rotate(log)
    assert not rotation.rotate(tmp_path / "none.log")
    assert log.stat().st_size == size
