"""An application that is not ours runs, with its aspects woven in from its first call on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from application_builders import ASPECTS, CODE, Here, a_package
from process_walks import alive
from waiting import until

from monitoring.applications import repository, scheduled
from monitoring.applications.drivers import engines
from monitoring.applications.inside import AtLoading
from monitoring.model import RuntimePerformance
from servioticy.embedded.folder import DataFolder
from servioticy.settings import to_environment
from servioticy.supervisor.program import Program
from servioticy.supervisor.supervisor import Supervisor

PROFILED = f'{ASPECTS}measures = ["runtime", "profile"]\n'
SHELL = """
NODE = '"node":{"nodeId":"a/b/1","nodePurpose":"shell"}'
LINE = '{"type":"Calls",' + NODE + ',"place":"p","end":1,"calls":2,"failed":0}'

def start(deployment):
    text = f"echo '{LINE}' > \\"$PIPE\\"; {deployment['entry']}"
    return {"command": ["/bin/sh", "-c", text], "environment": {"PIPE": deployment["pipe"]}}
"""
FORKING = """
import os, sys

def step(given):
    return os.getpid()

def main():
    pids = [step({"id": "parent"})]
    child = os.fork()
    if child == 0:
        import time
        import forked_later
        while not os.path.exists("woven"):
            time.sleep(0.01)
            forked_later.other({"id": "child"})
        sys.exit(0)
    os.waitpid(child, 0)
"""
LATER = "def other(given):\n    return given\n"


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path / "data")


def test_it_is_measured_from_its_first_call_and_ends_as_it_ends(
    here: Here, tmp_path: Path
) -> None:
    """Its code says nothing of monitoring, and lasts for moments only."""
    assert here.deploy(a_package(tmp_path / "p", arguments='["3"]', rest=PROFILED)) == []
    with here.monitor() as monitor:
        assert monitor.wait(120) == 0
    found = here.measured()
    steps = [each for each in found if isinstance(each, RuntimePerformance)]

    assert [each.sequence for each in steps] == ["loop:0", "loop:1", "loop:2"]
    assert {each.node.node_purpose for each in steps} == {"stepping"}
    assert len(found) == 6
    state = here.state()
    assert (state.state, state.why, state.starts) == ("ended", "exit code 0", 1)
    assert (state.stored, state.lost) == (6, 0)


def test_it_is_stopped_and_nothing_of_it_is_left(here: Here, tmp_path: Path) -> None:
    here.deploy(a_package(tmp_path / "p"))
    with here.monitor() as monitor:
        process = here.until("running").process
        until(lambda: here.state().stored == 3)
        monitor.terminate()
        assert monitor.wait(120) == 0

    assert not alive(process)
    assert len(here.measured()) == 3
    repository.wish(here.data, "loop", "stopped")
    assert here.state().state == "stopped"


def test_when_it_is_killed_its_monitor_says_so(here: Here, tmp_path: Path) -> None:
    here.deploy(a_package(tmp_path / "p"))
    with here.monitor() as monitor:
        os.kill(here.until("running").process, signal.SIGKILL)
        assert monitor.wait(120) == 1
    assert (here.state().state, here.state().why) == ("failed", "signal SIGKILL")
    here.place().scratch.mkdir()
    with here.monitor():
        assert here.until("running").starts == 2
        assert not here.place().scratch.exists()


def test_when_its_monitor_is_killed_that_is_seen(here: Here, tmp_path: Path) -> None:
    """Who supervises ends the whole group then, as `up` does."""
    here.deploy(a_package(tmp_path / "p"))
    with here.monitor() as monitor:
        process = here.until("running").process
        monitor.kill()
        until(lambda: here.state().state == "lost")
        assert os.getpgid(process) == monitor.pid
    until(lambda: not alive(process))


def test_who_supervises_begins_both_again_and_stops_both(here: Here, tmp_path: Path) -> None:
    """By the rules that the platform's own programs have."""
    here.deploy(a_package(tmp_path / "p"))
    environment = to_environment(here.settings)
    folder = DataFolder(here.data)
    supervisor = Supervisor(
        [],
        folder,
        others=lambda: [
            Program(name, command, environment)
            for name, command in scheduled.commands(here.data).items()
        ],
    )
    try:
        supervisor.start()
        until(lambda: supervisor.tick() or here.state().state == "running")
        first = here.state().process
        os.kill(supervisor.pids()["application-loop"], signal.SIGKILL)
        until(lambda: supervisor.tick() or here.state().process not in (0, first))
        second = here.state().process
        assert alive(second)
        assert not alive(first)
        repository.wish(here.data, "loop", "stopped")
        until(lambda: supervisor.tick() or supervisor.pids() == {})
        until(lambda: supervisor.tick() or not alive(second))
        assert here.until("stopped").starts == 2
    finally:
        supervisor.stop()
        folder.release()


def test_what_its_driver_cannot_begin_has_failed(here: Here, tmp_path: Path) -> None:
    driver = tmp_path / "any.py"
    driver.write_text("def start(deployment): return {'command': ['/no/such/program']}")
    engines.supply(here.data, "any", driver)
    here.deploy(a_package(tmp_path / "p", engine="any"))
    with here.monitor() as monitor:
        assert monitor.wait(120) == 1

    assert "/no/such/program" in here.state().why


def test_a_driver_that_was_supplied_begins_what_is_no_python(here: Here, tmp_path: Path) -> None:
    """Whatever writes lines to the pipe has measured."""
    driver = tmp_path / "any.py"
    driver.write_text(SHELL)
    engines.supply(here.data, "shell", driver)
    here.deploy(a_package(tmp_path / "p", engine="shell", entry="exit 3"))
    with here.monitor() as monitor:
        assert monitor.wait(120) == 1

    assert here.state().why == "exit code 3"
    assert [type(each).__name__ for each in here.measured()] == ["Calls"]


def test_it_is_not_told_where_the_platforms_stores_are(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVIOTICY_DSN", "secret")
    code = "import os\ndef main():\n    assert not [x for x in os.environ if 'SERVIO' in x]\n"
    here.deploy(a_package(tmp_path / "p", code=code, rest='[environment]\nMINE = "1"'))
    with here.monitor() as monitor:
        assert monitor.wait(120) == 0


def test_forks_of_it_are_woven_too(here: Here, tmp_path: Path) -> None:
    """And a module that only the fork loads."""
    aspect = '[[aspect]]\npointcut = "forked_later.other"\nsequence = "given.id"\n'
    folder = a_package(tmp_path / "p", code=FORKING, rest=f"{ASPECTS}{aspect}")
    (folder / "forked_later.py").write_text(LATER)
    here.deploy(folder)
    with here.monitor() as monitor:
        until(lambda: any(x.place == "forked_later.other" for x in here.measured()))
        (here.place().package / "woven").touch()
        assert monitor.wait(120) == 0

    assert len({each.node.node_id for each in here.measured()}) == 2


def test_what_is_woven_is_changed_while_it_runs(here: Here, tmp_path: Path) -> None:
    code = CODE.replace("time.sleep(0.05)", 'time.sleep(0.05); step({"id": 7})')
    here.deploy(a_package(tmp_path / "p", code=code))
    with here.monitor():
        until(lambda: here.state().stored > 5)
        text = here.place().aspects.read_text()
        here.place().aspects.write_text(text.replace("stepping", "as said now"))
        until(
            lambda: {"stepping", "as said now"} <= {x.node.node_purpose for x in here.measured()}
        )


def test_only_modules_that_a_pointcut_may_name_are_looked_at() -> None:
    woven: list[str] = []
    finder = AtLoading(lambda name: name == "colorsys", lambda: woven.append("now"))

    assert finder.find_spec("bisect") is None
    assert woven == []
