"""What becomes of a run of tests in which some fail."""

from __future__ import annotations

from pathlib import Path

import again
import pytest

ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path({seen!r})
    first = not seen.exists()
    seen.write_text("")
    assert not first

def test_passes():
    pass
"""
ALWAYS = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_fails(number):
    with open({runs!r}, "a") as file:
        file.write("x")
    assert False
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(again, "CHECKOUT", tmp_path)
    monkeypatch.setattr(again, "FAILED", tmp_path / ".pytest_cache/v/cache/lastfailed")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # what starts slowly
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_what_passes_alone_passes_and_is_named(
    checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (checkout / "test_it.py").write_text(ONCE.format(seen=str(checkout / "seen")))

    assert again.main(["test_it.py", "-n", "1"]) == 0

    named = capfd.readouterr().err.rpartition("again: these passed only alone")[2]
    assert "test_it.py::test_fails_once" in named
    assert "test_passes" not in named


@pytest.mark.parametrize(
    ("count", "runs"), [(again.MOST, 2 * again.MOST), (again.MOST + 1, again.MOST + 1)]
)
def test_what_fails_again_fails_and_many_are_not_tried_again(
    checkout: Path, count: int, runs: int
) -> None:
    ran = checkout / "runs"
    (checkout / "test_it.py").write_text(ALWAYS.format(count=count, runs=str(ran)))

    assert again.main(["test_it.py"]) == again.TESTS_FAILED

    assert len(ran.read_text()) == runs


def test_what_cannot_be_collected_is_no_chance(checkout: Path) -> None:
    (checkout / "test_it.py").write_text("import nothing_of_this_name")

    assert again.main(["test_it.py"]) not in (0, again.TESTS_FAILED)


def test_failures_of_an_earlier_run_are_forgotten(checkout: Path) -> None:
    (checkout / "test_it.py").write_text(ALWAYS.format(count=1, runs=str(checkout / "runs")))
    again.main(["test_it.py"])
    (checkout / "test_it.py").write_text("def test_passes(): pass\n")

    assert again.main(["test_it.py"]) == 0


def test_workers_that_collect_different_tests_are_told_of(
    checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As they do where tests are made from what has another order in each process."""
    (checkout / "test_it.py").write_text(
        "import os, pytest\n"
        "@pytest.mark.parametrize('process', [os.getpid()])\n"
        "def test_passes(process): pass\n"
    )

    assert again.main(["test_it.py", "-n", "2"]) == again.TESTS_FAILED

    told = capfd.readouterr()
    assert "+test_it.py::test_passes[" in told.out
    assert "differs from worker to worker" in told.err
