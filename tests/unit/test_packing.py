"""`servioticy pack`: an environment that knows no path of the machine that packed it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from command.packing import installed, packed
from command.packing.installed import HERE
from pipeline.spark.configuration import of_java
from servioticy.errors import SetupError
from servioticy.settings import Settings, changed, load


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all libraries one, so that it is quick."""

    def others(*, with_spark: bool) -> Iterator[tuple[str, Path]]:
        for each in metadata.distribution("orjson").files or ():
            if each.suffix != ".pyc":
                yield each.as_posix(), Path(str(each.locate()))

    monkeypatch.setattr(installed, "others", others)


def test_the_same_installation_gives_the_same_bytes(small: None, tmp_path: Path) -> None:
    one, two = tmp_path / "one.tar.gz", tmp_path / "two.tgz"

    assert packed.pack(load(), one) == packed.pack(load(), two)
    assert one.read_bytes() == two.read_bytes()
    assert {*tmp_path.iterdir()} == {one, two}


def test_no_path_of_this_machine_is_in_it(small: None, tmp_path: Path) -> None:
    packed.pack(load(), tmp_path / "it.tar.gz")

    with tarfile.open(tmp_path / "it.tar.gz") as found:
        members = found.getmembers()
        for each in members:
            assert each.isfile() and not each.name.startswith(("/", ".."))
            assert not each.uname and each.mtime == 0
            if each.name.startswith("bin/"):
                content = found.extractfile(each)
                assert content is not None
                assert str(HERE).encode() not in content.read()
    assert {"bin/python", "bin/servioticy"} < {each.name for each in members}


def test_it_runs_from_wherever_it_is_unpacked(small: None, tmp_path: Path) -> None:
    """By the Python of that name on the path, from a folder with a blank in its name."""
    packed.pack(load(), tmp_path / "it.tar.gz")
    there = tmp_path / "a folder"
    with tarfile.open(tmp_path / "it.tar.gz") as found:
        found.extractall(there, filter="data")
    code = (
        "import sys, orjson, servioticy; print(orjson.__file__, servioticy.__file__, sys.prefix)"
    )

    done = _run([there / "bin" / "python", "-P", "-c", code], path=_python_alone(tmp_path))

    assert done.stderr == ""
    assert done.stdout.count(str(there)) == 3
    moved = there.rename(tmp_path / "moved")
    again = _run([moved / "bin" / "python", "-P", "-c", code], path=_python_alone(tmp_path))
    assert again.stdout.count(str(moved)) == 3


def test_a_machine_without_that_python_says_so(small: None, tmp_path: Path) -> None:
    packed.pack(load(), tmp_path / "it.tar.gz")
    with tarfile.open(tmp_path / "it.tar.gz") as found:
        found.extractall(tmp_path, filter="data")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "dirname").symlink_to(shutil.which("dirname") or "")

    done = _run([tmp_path / "bin" / "python", "-c", "pass"], path=tools)

    assert done.returncode == 127
    assert f"no python{packed.VERSION} on its PATH" in done.stderr


def test_what_the_pipeline_needs_is_in_it_and_sparks_jars_are_not() -> None:
    without = dict(installed.others(with_spark=False))
    tops = {name.split("/")[0] for name in without}

    assert {"pyspark", "pandas", "pyarrow", "py_mini_racer", "wasmtime", "psycopg2"} < tops
    assert {"dateutil", "packaging"} < tops  # what those need
    assert not {"pytest", "mypy", "flask"} & tops
    assert not [name for name in without if name.startswith("pyspark/jars/")]
    with_them = dict(installed.others(with_spark=True))
    assert [name for name in with_them if name.startswith("pyspark/jars/spark-core")]


def test_a_name_that_spark_would_not_unpack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"\.tar\.gz"):
        packed.pack(load(), tmp_path / "it.tar.xz")
    assert not [*tmp_path.iterdir()]


def test_what_breaks_off_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def others(*, with_spark: bool) -> Iterator[tuple[str, Path]]:
        yield "gone", tmp_path / "gone"

    monkeypatch.setattr(installed, "others", others)

    with pytest.raises(FileNotFoundError):
        packed.pack(load(), tmp_path / "it.tar.gz")
    assert not [*tmp_path.iterdir()]


def test_executors_of_another_machine_get_it() -> None:
    own = changed(Settings(), spark_master="spark://10.0.0.1:7077", spark_archive="/a/env.tar.gz")
    here = changed(own, spark_master="")

    told = of_java(own.spark, [], Path("/scratch"))
    assert told["spark.archives"] == "/a/env.tar.gz#servioticy"
    assert told["spark.pyspark.python"] == "./servioticy/bin/python"
    assert "spark.archives" not in of_java(here.spark, [], Path("/scratch"))


def _python_alone(folder: Path) -> Path:
    """A folder with nothing of ours: the Python that this environment was made of, and tools."""
    tools = folder / "path"
    if not tools.exists():
        tools.mkdir()
        (tools / f"python{packed.VERSION}").symlink_to(Path(sys.executable).resolve())
        for each in ("dirname", "mv", "ln"):
            (tools / each).symlink_to(shutil.which(each) or "")
    return tools


def _run(words: list[str | Path], path: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path), "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    return subprocess.run(
        [*map(str, words)], env=environment, capture_output=True, text=True, check=False
    )
