"""`servioticy doctor --worker` names what a machine lacks, and what to do about it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from command import cli, doctor, extras, worker_machine
from command.doctor import Check
from command.worker_machine import LAYERS
from sandbox import InfraError
from sandbox.guest.layers import REQUIRED
from servioticy.embedded import tcp_ports, unprivileged
from servioticy.errors import SetupError
from servioticy.settings import Settings, changed, load

FORBIDDEN = """
echo 1 > /proc/sys/user/max_user_namespaces
exec unshare --user --map-user=1000 --map-group=1000 -- "$@"
"""
"""Who is not root, where nobody may make a namespace: as in a container without rights."""
UNNAMED = {"postgres", "kafka"}


def found(settings: Settings) -> dict[str, Check]:
    return {each.name: each for each in worker_machine.examine(settings)}


def failed(checks: dict[str, Check]) -> set[str]:
    return {name for name, check in checks.items() if not check.ok}


def test_a_good_machine_has_all_but_what_nobody_named() -> None:
    checks = found(load({}, {}))

    assert failed(checks) == UNNAMED
    assert "SERVIOTICY_DSN" in checks["postgres"].remedy
    assert {f"v8: {each}" for each in REQUIRED} < checks.keys()


def test_every_layer_that_is_required_has_a_remedy() -> None:
    assert set(REQUIRED) <= LAYERS.keys()


def test_who_does_not_answer_is_told_with_the_address() -> None:
    port = tcp_ports.free()
    where = {"dsn": f"postgresql://127.0.0.1:{port}/x", "bootstrap_servers": f"127.0.0.1:{port}"}

    checks = found(load({}, {**where, "spark_master": f"spark://127.0.0.1:{port}"}))

    assert failed(checks) == {*UNNAMED, "master"}
    assert f"127.0.0.1:{port}" in checks["postgres"].remedy
    assert "it advertises" in checks["kafka"].remedy
    assert "clock" not in checks


def test_a_machine_without_java_and_javascript_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_settings: Settings) -> None:
        raise SetupError("install Java 17 or newer")

    monkeypatch.setattr(doctor.java, "find", none)

    checks = found(load({}, {"javascript": str(tmp_path)}))

    assert failed(checks) == {*UNNAMED, "java", "javascript", "v8"}
    assert checks["v8"].remedy == "run `make setup`"
    assert "not chosen" in checks["quickjs"].detail
    assert all(check.remedy for check in checks.values() if not check.ok)


def test_a_library_that_does_not_load_is_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may end the process that loads it."""
    (tmp_path / "orjson.py").write_text("raise ImportError('libgone.so.1: no such file')")
    (tmp_path / "pyarrow.py").write_text("import os; os.abort()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    refused, crashed = (worker_machine._loads(each) for each in ("orjson", "pyarrow"))

    assert "libgone.so.1" in refused.detail
    assert not crashed.ok
    assert crashed.detail == "it ended with -6"
    assert "servioticy pack" in crashed.remedy


def test_another_version_than_was_released_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, here = extras.pinned("pipeline"), metadata.version("pyspark")
    assert wanted["pyspark"] == here
    monkeypatch.setattr(extras, "pinned", lambda _: {**wanted, "pyspark": "3.5.0", "gone": "1"})

    check = worker_machine._versions()

    assert not check.ok
    assert check.detail == f"gone missing, not 1, pyspark {here}, not 3.5.0"


def test_a_layer_that_is_refused_has_its_own_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def layers(self) -> None:
            raise InfraError("no worker: seccomp: prctl is not permitted")

        def close(self) -> None:
            pass

    monkeypatch.setattr(worker_machine, "sandbox_pool", lambda _: Refusing())

    (check,) = worker_machine._sandbox(Settings(), "v8")

    assert (check.ok, check.remedy) == (False, LAYERS["seccomp"])


def test_without_root_and_namespaces_scripts_are_enclosed_all_the_same() -> None:
    """What a container without rights has; layers that are missing are told, with why."""
    if not unprivileged.namespaces_allowed():
        pytest.skip(
            "this machine lets us make no namespaces, so others cannot be forbidden in one"
        )
    outside = ["unshare", "--user", "--map-root-user", "--", "sh", "-ec", FORBIDDEN, "sh"]
    done = subprocess.run(
        [*outside, sys.executable, "-P", "-m", "command.cli", "doctor", "--worker"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    lines = {line[6:].split("  ")[0]: line for line in done.stdout.splitlines()}
    assert {name for name, line in lines.items() if line.startswith("FAIL")} == UNNAMED
    assert all(lines[f"v8: {each}"].endswith("holds") for each in REQUIRED)
    assert "no programs of strangers run here" in lines["operators"]


def test_the_exit_code_says_whether_all_is_well() -> None:
    assert doctor.told([Check("it", True, "is well")]) == 0
    assert doctor.told([Check("it", False, "is not", "mend it")]) == 1


def test_two_questions_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--worker", "--accept-log-loss"]) == 1
    assert "each for themselves" in capsys.readouterr().err


def test_a_master_at_an_address_of_ipv6_is_looked_at() -> None:
    settings = changed(Settings(), spark_master=f"spark://[::1]:{tcp_ports.free()}")

    assert found(settings)["master"].detail.startswith("::1:")
