"""A procedure that is a program: run by the node manager of this machine, beside its own kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from operator_folders import SECONDS, node_of, write
from workflow_builders import a_queue, a_workflow, an_atom

from functions.programs import Asking, Known, Running
from functions.steps import Task
from operators import manifest
from servioticy.ports.programs import Manifest, Program

PROGRAM = Program(1, "tried", 1)
WORKFLOW = a_workflow("score", procedures={"score": {"operator": {"name": "tried", "version": 1}}})
MAIN = """
import os
from servioticy_operator import serve

def score(event, state):
    n = event.value("n")
    if n == 2:
        raise ValueError("two")
    for each in range(n):
        yield {"of": n, "each": each, "seen": state.get("seen", 0), "pid": os.getpid()}
    state.put("seen", state.get("seen", 0) + 1)

serve(score)
"""


class Registry:
    def __init__(self, folder: Path) -> None:
        self._manifest = manifest.read((folder / manifest.FILE).read_bytes()).manifest

    def manifests(self, programs: Sequence[Program]) -> Mapping[Program, Manifest]:
        return dict.fromkeys(programs, self._manifest)


def test_atoms_go_through_a_program_and_each_instance_has_one(tmp_path: Path) -> None:
    """None, one and several are made of one; what fails spoils no other; nothing is kept."""
    folder = write(tmp_path / "tried", MAIN, limits={"memory": "64MiB"})
    both = {PROGRAM._replace(lane=lane): folder for lane in (0, 1)}
    with node_of(both, tmp_path) as node:
        step = Running(Asking(node), Known(Registry(folder)), SECONDS)
        found = [
            step.work(
                Task(a_queue(step=0), WORKFLOW, place),
                [an_atom(n, body=b'{"n":%d}' % n) for n in range(4)],
            )
            for place in ("1.0", "1.1", "1.0")
        ]
        pids = set()
        for each in found:
            made = {n: [orjson.loads(atom) for atom in own] for n, own in each.done.items()}
            assert {n: [atom["each"] for atom in own] for n, own in made.items()} == {
                0: [],
                1: [0],
                3: [0, 1, 2],
            }
            assert {n: failure.reason for n, failure in each.failed.items()} == {
                2: "error: ValueError: two"
            }
            assert {atom["seen"] for own in made.values() for atom in own} == {0}
            assert each.mebibyte_ms >= 64
            pids.add(made[1][0]["pid"])
        assert len({each.pid for each in node.running()}) == 2
    assert found[0].processor_us > 0
    assert len(pids) <= 2
