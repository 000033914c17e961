"""Applications that are not ours: what is taken into the repository, and what is told of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from application_builders import ASPECTS, Here, a_package

from command import cli
from monitoring.applications import deploying, package, repository, scheduled, states
from monitoring.applications.drivers import engines
from monitoring.applications.drivers.python import ROOT
from monitoring.applications.inside import CUSTOMIZE, LOADED
from monitoring.applications.repository import NotRegistered, Registered, TooMuch
from monitoring.applications.states import Written
from monitoring.configuration import NotUnderstood, parsed
from monitoring.state import birth

DRIVER = """
def start(deployment):
    return {"command": ["/bin/echo", deployment["entry"], *deployment["arguments"]]}
"""
REFUSING = f"""{DRIVER}
def check(deployment):
    raise ValueError("no " + deployment["entry"])
"""


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path / "data")


def kept(here: Here, folder: Path, name: str = "loop") -> Registered:
    """Registered without being loaded."""
    read = package.read(a_package(folder, name=name))
    return repository.register(here.data, read, folder)


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("[[aspect]]", "missing required field `pointcut`"),
        ('[publish]\nto = ["metrics"]', r"metrics is nothing for applications"),
        ('[publish]\nto = ["pipe"]\npipe = "p"', "pipe is nothing for applications"),
        ('[publish]\nto = ["own"]', r"`\$.publish.own`"),
        ('[environment]\nSERVIOTICY_DSN = "x"', "SERVIOTICY_DSN is one of ours"),
        ('[environment]\n"A B" = "x"', "matching regex"),
        ("sample = 1", "unknown field `sample`"),
    ],
)
def test_what_is_wrong_with_a_package_is_said(tmp_path: Path, rest: str, why: str) -> None:
    with pytest.raises(NotUnderstood, match=why):
        package.read(a_package(tmp_path / "p", rest=rest))


@pytest.mark.parametrize("name", ["", "A", "../x", "1x", "x" * 41])
def test_a_name_is_a_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotUnderstood, match="matching regex"):
        package.read(a_package(tmp_path / "p", name=name))


def test_what_its_processes_follow_says_what_the_package_says(tmp_path: Path) -> None:
    """Whatever characters stand in it."""
    purpose = 'a "b" \\ \t\x7f\u00e9\U0001f600'
    written = r'"a \"b\" \\ \t\u007f\u00e9\U0001f600"'
    aspect = f'[[aspect]]\npointcut = "a.b"\nsample = 0.25\npurpose = {written}'
    rest = f'{ASPECTS}\n{aspect}\nmeasures = ["count", "profile"]'
    read = package.read(a_package(tmp_path / "p", rest=rest))
    pipe = tmp_path / 'o"ne\\'
    followed = parsed(package.aspects_text(read.aspect, pipe).encode())

    assert followed.aspect == read.aspect
    assert followed.aspect[1].purpose == purpose
    assert (followed.publish.to, followed.publish.pipe) == (("pipe",), str(pipe))


def test_a_package_is_kept_and_replaced_under_its_id(here: Here, tmp_path: Path) -> None:
    first = kept(here, tmp_path / "p")
    (tmp_path / "p" / "loop.py").write_text("def main(): pass")
    second = kept(here, tmp_path / "p")

    assert (first.id, first.version, first.wish) == (second.id, 1, "running")
    assert (second.version, second.turn) == (2, first.turn + 1)
    assert sorted(each.name for each in here.place().package.iterdir()) == [
        "application.toml",
        "loop.py",
    ]
    assert [each.name for each in repository.all_registered(here.data)] == ["loop"]


def test_so_many_are_taken_and_no_more(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is there already may always be replaced."""
    monkeypatch.setattr(repository, "MOST", 2)
    kept(here, tmp_path / "p", "one")
    kept(here, tmp_path / "p", "two")
    with pytest.raises(TooMuch, match="2 applications already"):
        kept(here, tmp_path / "p", "three")

    assert kept(here, tmp_path / "p", "two").version == 2
    repository.remove(here.data, "one")
    assert kept(here, tmp_path / "p", "three").version == 1


def test_a_package_has_so_many_files_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_package(tmp_path / "p")
    files, size = repository.measured(folder)
    monkeypatch.setattr(repository, "MOST_FILES", files)
    monkeypatch.setattr(repository, "MOST_BYTES", size)
    assert repository.measured(folder) == (2, size)

    (folder / "empty").touch()
    with pytest.raises(TooMuch, match="2 files and"):
        repository.measured(folder)
    (folder / "empty").unlink()
    with (folder / "loop.py").open("a") as opened:
        opened.write("#")
    with pytest.raises(TooMuch, match="2 files and"):
        repository.measured(folder)


def test_a_package_has_nothing_but_files(tmp_path: Path) -> None:
    """A link would be followed by whoever runs it; a pipe would never be read to its end."""
    folder = a_package(tmp_path / "p")
    (folder / "link").symlink_to("/")
    with pytest.raises(TooMuch, match="link is neither"):
        repository.measured(folder)
    (folder / "link").unlink()
    os.mkfifo(folder / "fifo")
    with pytest.raises(TooMuch, match="fifo is neither"):
        repository.measured(folder)
    with pytest.raises(TooMuch, match=r"no application.toml"):
        repository.measured(tmp_path)


def test_without_a_driver_nothing_is_registered_until_one_is_supplied(
    here: Here, tmp_path: Path
) -> None:
    folder = a_package(tmp_path / "p", engine="shouting", entry="hello")
    with pytest.raises(NotUnderstood, match="no driver for the engine shouting"):
        here.deploy(folder)
    assert repository.all_registered(here.data) == []
    file = tmp_path / "any.py"
    file.write_text(REFUSING)
    engines.supply(here.data, "shouting", file)
    with pytest.raises(NotUnderstood, match="says: no hello"):
        here.deploy(folder)
    file.write_text(DRIVER)
    engines.supply(here.data, "shouting", file)

    assert engines.known(here.data) == ["python", "pyspark", "java", "storm", "shouting"]
    assert here.deploy(folder) == []
    assert [each.engine for each in repository.all_registered(here.data)] == ["shouting"]


@pytest.mark.parametrize(
    ("engine", "text", "why"),
    [
        ("python", DRIVER, "is ours"),
        ("../x", DRIVER, "no name"),
        ("mine", "x = 1", "no function start"),
        ("mine", "raise ValueError('so')", "does not load: ValueError"),
        ("mine", "#" * (engines.MAX_BYTES + 1), "bytes at most"),
    ],
)
def test_a_driver_that_is_none_is_refused(
    here: Here, tmp_path: Path, engine: str, text: str, why: str
) -> None:
    file = tmp_path / "any.py"
    file.write_text(text)
    with pytest.raises(NotUnderstood, match=why):
        engines.supply(here.data, engine, file)
    assert engines.known(here.data) == ["python", "pyspark", "java", "storm"]


def test_so_many_drivers_are_taken(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MOST", 1)
    file = tmp_path / "any.py"
    file.write_text(DRIVER)
    engines.supply(here.data, "one", file)
    with pytest.raises(NotUnderstood, match="1 drivers already"):
        engines.supply(here.data, "two", file)
    engines.supply(here.data, "one", file)


@pytest.mark.parametrize(
    ("entry", "code", "why"),
    [
        ("loop:gone", "", "loop has no gone"),
        ("loop", "", "has to be MODULE:FUNCTION"),
        ("loop:number", "number = 1", "cannot be called"),
        ("loop:main", "import no_such_module", "No module named 'no_such_module'"),
        ("loop:main", "import os; os._exit(3)", "ended with code 3"),
    ],
)
def test_what_does_not_load_is_not_registered(
    here: Here, tmp_path: Path, entry: str, code: str, why: str
) -> None:
    with pytest.raises(NotUnderstood, match=why):
        here.deploy(a_package(tmp_path / "p", entry=entry, code=code))
    assert repository.all_registered(here.data) == []


def test_pointcuts_that_name_nothing_are_told_when_it_is_deployed(
    here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They may name what is loaded later, so it is no reason to refuse it."""
    folder = a_package(tmp_path / "p", rest=f'{ASPECTS}[[aspect]]\npointcut = "loop.gone"')
    assert cli.main(["monitor", "deploy", str(folder), "--data", str(here.data)]) == 0
    found = repository.registered(here.data, "loop")

    assert capsys.readouterr().out.splitlines() == [
        f"loop: version 1 is registered, its id is {found.id}",
        "  nothing is there yet that loop.gone names",
    ]
    assert list(scheduled.commands(here.data)) == ["application-loop"]


def test_a_check_leaves_nothing_in_the_package(here: Here, tmp_path: Path) -> None:
    folder = a_package(tmp_path / "p")
    here.deploy(folder)

    assert sorted(each.name for each in folder.iterdir()) == ["application.toml", "loop.py"]


@pytest.mark.parametrize(
    ("wish", "turn", "step", "lives", "told"),
    [
        ("running", 0, "starting", False, "waiting"),
        ("running", 1, "starting", True, "starting"),
        ("running", 1, "running", True, "running"),
        ("running", 1, "running", False, "lost"),
        ("running", 1, "ended", False, "ended"),
        ("running", 1, "failed", False, "failed"),
        ("running", 0, "running", True, "stopping"),
        ("running", 0, "ended", True, "waiting"),
        ("stopped", 1, "running", True, "stopping"),
        ("stopped", 1, "running", False, "stopped"),
        ("stopped", 1, "failed", False, "stopped"),
    ],
)
def test_the_state_is_what_was_written_and_whether_its_monitor_lives(
    here: Here, tmp_path: Path, wish: str, turn: int, step: str, lives: bool, told: str
) -> None:
    kept(here, tmp_path / "p")
    if wish == "stopped":
        repository.wish(here.data, "loop", "stopped")
    born = birth(os.getpid()) if lives else "another"
    states.write(
        here.place(),
        Written(turn, step, os.getpid(), born, 7, 5, 2, "so", 9, 1),  # type: ignore[arg-type]
    )

    assert here.state().state == told
    assert here.state().process == (7 if told in ("running", "stopping") else 0)


def test_one_that_was_never_begun_waits_for_a_platform(
    here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(here, tmp_path / "p")
    here.place().state.write_text("{")
    assert cli.main(["monitoring", "applications", "--data", str(here.data)]) == 0
    assert "servioticy up" in capsys.readouterr().out
    assert cli.main(["monitoring", "stop", "loop", "--data", str(here.data)]) == 0
    assert scheduled.commands(here.data) == {}
    assert cli.main(["monitoring", "start", "loop", "--data", str(here.data)]) == 0
    assert list(scheduled.commands(here.data)) == ["application-loop"]
    assert cli.main(["monitoring", "remove", "loop", "--data", str(here.data)]) == 0
    assert not here.place().folder.exists()


def test_one_that_has_ended_is_begun_again_only_when_somebody_says_so(
    here: Here, tmp_path: Path
) -> None:
    turn = kept(here, tmp_path / "p").turn
    states.write(here.place(), Written(turn, "ended", 1, "", 0, 5, 1, "", 0, 0))
    assert scheduled.commands(here.data) == {}
    repository.wish(here.data, "loop", "running")

    assert list(scheduled.commands(here.data)) == ["application-loop"]


@pytest.mark.parametrize("words", [["stop", "loop"], ["start", "../x"], ["remove", "."]])
def test_what_is_not_registered_is_said(
    here: Here, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["monitoring", *words, "--data", str(here.data)]) == 1
    assert f"there is no application {words[1]}" in capsys.readouterr().err
    with pytest.raises(NotRegistered):
        repository.registered(here.data, words[1])


def test_the_copy_is_what_runs(here: Here, tmp_path: Path) -> None:
    """What its author does to the folder afterwards is not deployed."""
    folder = a_package(tmp_path / "p")
    deploying.deploy(here.settings, folder)
    (folder / "loop.py").write_text("raise SystemExit(9)")

    assert "def step" in (here.place().package / "loop.py").read_text()


def test_a_process_goes_on_where_nothing_can_be_woven(tmp_path: Path) -> None:
    """And what Python would have customized without us, it has."""
    for name, text in (("ours", LOADED), ("theirs", "import builtins\nbuiltins.THEIRS = 1\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{CUSTOMIZE}.py").write_text(text)
    path = os.pathsep.join(map(str, (tmp_path / "ours", tmp_path / "theirs", ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", "print(THEIRS)"],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "1\n"
    assert done.stderr == "nothing is woven here: KeyError('MONITORED_FOLDER')\n"
