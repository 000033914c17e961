"""What programs say where set-up has left something out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from command import doctor
from servioticy.embedded import tcp_ports
from servioticy.settings import load


@pytest.mark.parametrize("program", ["api", "pipeline"])
def test_a_program_without_acorn_says_what_to_do(program: str, tmp_path: Path) -> None:
    """It could look at no document and run no script, so it does not start."""
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SERVIOTICY_API_PORT": str(tcp_ports.free()),
        "SERVIOTICY_JAVASCRIPT": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-m", program], env=environment, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert "cannot run without acorn.js" in done.stderr
    assert "run `make setup`" in done.stderr


def test_the_doctor_names_both_parts() -> None:
    found = doctor.javascript_parts(load())

    assert found.ok
    assert "acorn 8.19.0" in found.detail
    assert "quickjs-wasmfile-release-sync 0.32.0" in found.detail


def test_the_doctor_misses_acorn(tmp_path: Path) -> None:
    settings = load({}, {"javascript": str(tmp_path)})
    checks = [doctor.javascript_parts(settings), doctor.sandbox_layers(settings)]

    assert [check.ok for check in checks] == [False, False]
    assert all("acorn.js" in check.detail for check in checks)
    assert {check.remedy for check in checks} == {"run `make setup`"}
