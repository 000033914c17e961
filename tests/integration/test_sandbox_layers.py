"""Which layers hold a worker, on machines that allow more or less; natively tried."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_pools import JAVASCRIPT, a_pool

from sandbox import InfraError
from sandbox.guest.confinement import OTHER_USER
from sandbox.host.worker_client import WorkerClient
from sandbox.yielding import may_change_many

ALL = {"limits", "network", "files", "user", "privileges", "seccomp"}

# Denies system calls as Docker's default profile does, then becomes the given program.
DENY = """
import ctypes, os, struct, sys
library = ctypes.CDLL(None, use_errno=True)
lines = [(0x20, 0, 0, 0)]
for number in map(int, sys.argv[1].split(",")):
    lines += [(0x15, 0, 1, number), (6, 0, 0, 0x50001)]
lines.append((6, 0, 0, 0x7FFF0000))
code = b"".join(struct.pack("HBBI", *line) for line in lines)
kept = ctypes.create_string_buffer(code, len(code))
assert library.prctl(38, 1, 0, 0, 0) == 0
assert library.prctl(22, 2, struct.pack("HxxxxxxP", len(lines), ctypes.addressof(kept))) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""
REPORT = """
import json, sys
from pathlib import Path
from sandbox import InfraError, SandboxOptions, SandboxPool
pool = SandboxPool(Path(sys.argv[2]), SandboxOptions(unprotected=sys.argv[1] == "any"))
try:
    print(json.dumps(pool.layers()))
except InfraError as error:
    print(json.dumps(str(error)))
pool.close()
"""
SESSION = """
import os, sys
from pathlib import Path
from sandbox import SandboxOptions, SandboxPool
pool = SandboxPool(Path(sys.argv[1]), SandboxOptions(unprotected=True, nice=3))
with pool._exclusion:
    pid = pool._workers.of("tenant").pid
print(os.getsid(pid) == pid)
pool.close()
"""
UNSHARE, SECCOMP = "272", "317"
engines = pytest.mark.parametrize("engine", ["v8", "quickjs"])
x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of its system calls")


def layers_under(*prefix: str, protection: str = "required") -> dict[str, str] | str:
    """What a pool says of its layers in a process started by `prefix`."""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", REPORT, protection, JAVASCRIPT],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] | str = json.loads(done.stdout)
    return found


def denying(*numbers: str) -> list[str]:
    return [sys.executable, "-c", DENY, ",".join(numbers)]


def missing(layers: dict[str, str] | str) -> set[str]:
    assert isinstance(layers, dict), layers
    assert set(layers) == ALL
    return {name for name, lack in layers.items() if lack}


def ordinary_user() -> list[str]:
    """A prefix that is an ordinary user who can read this checkout."""
    if os.getuid() != 0:
        return []
    prefix = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("no user namespaces")
    return prefix


def test_an_ordinary_user_has_every_layer() -> None:
    """With user namespaces nothing needs root."""
    assert missing(layers_under(*ordinary_user())) == set()


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes somebody else")
@engines
def test_a_worker_of_root_is_not_root(engine: str) -> None:
    """And has all its layers without a user namespace."""
    pool = a_pool(engine=engine)
    try:
        assert missing(pool.layers()) <= {"network"}  # a container's root may not have it
        with pool._exclusion:
            worker = pool._workers.of("tenant")
        status = Path(f"/proc/{worker.pid}/status").read_text()
    finally:
        pool.close()

    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split()) == set(fields["Gid"].split()) == {str(OTHER_USER)}
    assert fields["Groups"].strip() == ""
    assert int(fields["CapPrm"], 16) == int(fields["CapEff"], 16) == 0
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


@x86
def test_without_namespaces_seccomp_and_user_remain() -> None:
    """A container whose profile refuses unshare."""
    without = missing(layers_under(*denying(UNSHARE)))
    assert {"network"} <= without <= {"network", "files"}
    assert missing(layers_under(*ordinary_user(), *denying(UNSHARE))) == {"network", "files"}


@x86
def test_without_seccomp_nothing_runs() -> None:
    """Unless it is asked for, and then it is said."""
    refused = layers_under(*denying(SECCOMP))
    assert isinstance(refused, str)
    assert "not protected: seccomp: Operation not permitted" in refused

    assert "seccomp" in missing(layers_under(*denying(SECCOMP), protection="any"))


@x86
@pytest.mark.skipif(os.getuid() != 0, reason="only root can remain root")
def test_root_does_not_run_scripts() -> None:
    """Where it can become nobody else."""
    refused = layers_under(*denying("117", "119"))  # setresuid, setresgid
    assert isinstance(refused, str)
    assert "still root" in refused


@engines
def test_workers_have_the_priority_that_is_wanted(engine: str) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for nice in (0, 3):
        pool = a_pool(engine=engine, nice=nice)
        try:
            with pool._exclusion:
                worker = pool._workers.of("tenant")
            assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(19, own + nice)
        finally:
            pool.close()


AUTOGROUP = Path("/proc/self/autogroup")
root = pytest.mark.skipif(
    not may_change_many(), reason="only such a root changes as many sessions as it wants"
)


@root
@pytest.mark.skipif(not AUTOGROUP.exists(), reason="Linux does not group by session")
@pytest.mark.parametrize(("is_patient", "nice"), [(False, 3), (True, 19)])
def test_each_worker_is_a_session_that_yields(*, is_patient: bool, nice: int) -> None:
    """A tenant's script leaves all programs their parts of the processor, and other tenants'."""
    pool = a_pool(nice=3)
    worker = WorkerClient(pool._zygote, is_patient=is_patient).ready()
    try:
        said = Path(f"/proc/{worker.pid}/autogroup").read_text()
        assert os.getsid(worker.pid) == worker.pid
        assert said.split()[-1] == str(nice)
    finally:
        worker.kill()
        pool.close()


@root
@pytest.mark.parametrize(
    ("prefix", "leads"),
    [
        ([], True),
        (["unshare", "--user", "--map-root-user"], False),
        (["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"], False),
    ],
    ids=["root", "of a namespace", "of a container"],
)
def test_a_root_that_may_change_few_sessions_has_all_in_one(
    prefix: list[str], leads: bool
) -> None:
    """Which yields: each of theirs would wait for the others, and keep the priority of all."""
    if prefix and subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("no such root here")
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    command = [*prefix, sys.executable, "-c", SESSION, JAVASCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert (done.stdout.strip(), done.stderr) == (str(leads), "")


@engines
def test_no_thread_of_a_worker_has_powers(engine: str) -> None:
    """The engine's threads are not forgotten."""
    pool = a_pool(engine=engine)
    try:
        with pool._exclusion:
            worker = pool._workers.of("tenant")
        threads = list(Path(f"/proc/{worker.pid}/task").iterdir())
        statuses = [(each / "status").read_text() for each in threads]
    finally:
        pool.close()

    assert len(statuses) > 1
    assert all("\nSeccomp:\t2\n" in each for each in statuses)
    assert all("\nCapPrm:\t0000000000000000\n" in each for each in statuses)
    assert all("\nCapEff:\t0000000000000000\n" in each for each in statuses)


def test_a_pool_that_may_not_serve_is_an_infrastructure_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the pipeline waits and tries again, and blames no script."""
    monkeypatch.setattr("sandbox.host.zygote_client._BOOT", _BOOT_WITHOUT_SECCOMP)
    pool = a_pool()
    try:
        with pytest.raises(InfraError, match="not protected: seccomp: it is off"):
            pool.layers()
    finally:
        pool.close()


_BOOT_WITHOUT_SECCOMP = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from sandbox.guest import seccomp
from sandbox.guest.zygote import main
def refuse():
    raise seccomp.SeccompRefused("it is off")
seccomp.install = refuse
main(int(sys.argv[1]), *sys.argv[3:])
"""

_BOOT_WITH_A_HOLE = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from sandbox.guest import seccomp
from sandbox.guest.zygote import main
allowed = (*seccomp.WORKER.allowed, *HOLES.values())
seccomp.WORKER = seccomp.WORKER._replace(allowed=allowed)
main(int(sys.argv[1]), *sys.argv[3:])
"""


@x86
@pytest.mark.parametrize(
    ("attempt", "numbers"),
    [
        ("open", {"openat": (257, 56)}),
        ("socket", {"socket": (41, 198)}),
        ("fork", {"clone": (56, 220), "fork": (57, -1), "vfork": (58, -1)}),
        ("kill", {"kill": (62, 129)}),
        ("executable memory", {"mmap again": (9, 222)}),
    ],
)
def test_a_hole_in_the_filter_is_found_at_the_start(
    monkeypatch: pytest.MonkeyPatch, attempt: str, numbers: dict[str, tuple[int, int]]
) -> None:
    """Each proof is tried on a filter that does allow what it tries."""
    boot = _BOOT_WITH_A_HOLE.replace("HOLES", repr(numbers))
    monkeypatch.setattr("sandbox.host.zygote_client._BOOT", boot)
    pool = a_pool()
    try:
        with pytest.raises(InfraError, match=f"seccomp: {attempt}"):
            pool.layers()
    finally:
        pool.close()
