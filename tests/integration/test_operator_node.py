"""The node manager with real processes: what it asks, what comes back, and whom it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from operator_folders import (
    PROGRAM,
    ROOM,
    SECONDS,
    answers,
    fetched,
    node_of,
    question,
    until,
    write,
)

from operators.attending import Bounds
from operators.links import Links, Pairs
from operators.queues.link import MOST_BYTES, Queues
from operators.queues.resp import Connection
from operators.queues.server import Server
from operators.room import QUESTION_BYTES, Room
from servioticy.ports.programs import Program, ProgramOutput

ECHO = """
from servioticy_operator import serve
serve(lambda event, state: event.channels)
"""

COUNT = """
from servioticy_operator import serve
def count(event, state):
    state.put("count", state.get("count", 0) + 1)
    return [(event.timestamp + 1, {"count": state.get("count")})]
serve(count)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A store for all tests here."""
    server = Server(lambda: tmp_path_factory.mktemp("store"), 20 * MOST_BYTES)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(params=["socket", "queue"])
def links(request: pytest.FixtureRequest) -> Iterator[Links]:
    """Both ways between the platform and a program; nothing is left of them behind a test."""
    if request.param == "socket":
        yield Pairs()
        return
    server: Server = request.getfixturevalue("store")
    queues = Queues(server.address, lambda: None)
    yield queues
    queues.close()
    asks = Connection(server.address())
    assert asks.calls([("ACL", "USERS"), ("DBSIZE",)]) == [[b"default"], 0]
    asks.close()


def raw(body: str) -> str:
    """Return a program that speaks without the kit: `send(bytes)`, `say(value)`, `read()`."""
    return f"""
import json, os, socket, struct, sys, time
connection = socket.socket(fileno=int(os.environ["SERVIOTICY_OPERATOR"]))
stream = connection.makefile("rb")
def send(content): connection.sendall(struct.pack(">I", len(content)) + content)
def say(value): send(json.dumps(value).encode())
def read():
    head = stream.read(4)
    if len(head) < 4: sys.exit()
    return json.loads(stream.read(struct.unpack(">I", head)[0]))["questions"]
{body}
"""


@pytest.mark.parametrize(
    ("language", "needs", "makes"),
    [
        ("python", "python3", [{"amount": 5000, "usual": 1.0}]),
        ("node", "node", [{"amount": 1}] * 12 + [{"amount": 5000}]),
        ("go", "go", [{"count": number} for number in range(1, 14)]),
        ("rust", "rustc", [{"count": number} for number in range(1, 14)]),
    ],
)
def test_the_sample_of_each_kit_runs(
    tmp_path: Path, language: str, needs: str, makes: list[dict[str, float]]
) -> None:
    """What a newcomer copies works as it is, and each kit is short enough to be read."""
    if shutil.which(needs) is None:
        pytest.skip(f"no {needs} on this machine")
    folder = tmp_path / "folder"
    shutil.copytree(ROOM / "samples" / language, folder)
    shutil.copytree(ROOM / "kits" / language, folder, dirs_exist_ok=True)
    if language == "go":
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
        subprocess.run(
            ["go", "build", "-o", "counter", "."], cwd=folder, env=environment, check=True
        )
    if language == "rust":
        command = ["rustc", "-O", "-o", "counter", "main.rs"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if "linker" in done.stderr:
            pytest.skip("no linker for rustc on this machine")
        assert done.returncode == 0, done.stderr
    with node_of({PROGRAM: folder}, tmp_path) as node:
        given = [1] * 12 + [5000]
        asked = question(1)._replace(
            events=[
                json.dumps(
                    {
                        "stream": "payments",
                        "timestamp": at,
                        "channels": {"amount": amount},
                        "version": 1,
                        "correlation": None,
                    }
                ).encode()
                for at, amount in enumerate(given)
            ]
        )
        reply = answers(node, [asked])[b"q1"]

    assert reply.error == ""
    assert [json.loads(each.channels) for each in reply.outputs] == makes
    lines = sum(
        len(each.read_text().splitlines()) for each in (ROOM / "kits" / language).iterdir()
    )
    assert lines < 100


def test_state_comes_with_the_question_and_goes_with_the_reply(
    tmp_path: Path, links: Links
) -> None:
    """A process remembers nothing that was not committed."""
    folder = write(tmp_path / "a", COUNT, state=True)
    with node_of({PROGRAM: folder}, tmp_path, links=links) as node:
        first = answers(node, [question(1, values=[5, 6])])[b"q1"]
        again = answers(node, [question(1, values=[5, 6])])[b"q1"]
        second = answers(node, [question(2, state=first.state)])[b"q2"]

    assert first.state == b'{"count":2}'
    assert first.outputs == [
        ProgramOutput(0, 1002, b'{"count":1}'),
        ProgramOutput(1, 1002, b'{"count":2}'),
    ]
    assert again.outputs == first.outputs
    assert second.outputs == [ProgramOutput(0, 1003, b'{"count":3}')]
    assert first.processor_seconds + again.processor_seconds + second.processor_seconds > 0


def test_questions_are_answered_in_their_order(tmp_path: Path, links: Links) -> None:
    """First in, first out, in frames of at most a batch."""
    folder = write(tmp_path / "a", ECHO, batch={"max": 7})
    with node_of({PROGRAM: folder}, tmp_path, links=links) as node:
        found = answers(node, [question(number) for number in range(300)])

    assert list(found) == [b"q%d" % number for number in range(300)]
    assert [found[b"q%d" % number].outputs[0].channels for number in (0, 299)] == [
        b'{"value":0}',
        b'{"value":299}',
    ]


def test_what_is_made_may_be_of_another_stream(tmp_path: Path) -> None:
    """At the event's time, or at one of its own."""
    main = """
from servioticy_operator import serve
def each(event, state):
    yield {"n": 1}
    yield ("other", {"n": 2})
    yield ("other", 5000, {"n": 3})
serve(each)
"""
    folder = write(tmp_path / "a", main)
    with node_of({PROGRAM: folder}, tmp_path) as node:
        reply = answers(node, [question(1)])[b"q1"]

    assert reply.outputs == [
        ProgramOutput(0, None, b'{"n":1}'),
        ProgramOutput(0, None, b'{"n":2}', "other"),
        ProgramOutput(0, 5000, b'{"n":3}', "other"),
    ]


def test_what_is_asked_after_a_question_goes_on_with_what_that_one_leaves(
    tmp_path: Path, links: Links
) -> None:
    """Before it is answered. What raises, or ends its process, leaves what was there."""
    main = """
import os, signal
from servioticy_operator import serve
def count(event, state):
    state.put("count", state.get("count", 0) + 1)
    if event.value("value") == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if event.value("value") == 5:
        raise ValueError("five")
    return {"count": state.get("count")}
serve(count)
"""
    folder = write(tmp_path / "a", main, state=True)
    asked = [question(1, state=b'{"count":10}')]
    asked += [question(n)._replace(after=b"q%d" % (n - 1)) for n in range(2, 8)]
    with node_of({PROGRAM: folder}, tmp_path, links=links) as node:
        replies = answers(node, asked)
        assert not node.ask(question(8)._replace(after=b"q7")), "it is answered already"
        assert not node.ask(question(9)._replace(after=b"nobody"))
        assert node.room_taken == 0

    assert list(replies) == [each.id for each in asked]
    counts = [json.loads(each.state or b"")["count"] for each in replies.values()]
    assert counts == [11, 12, 12, 13, 13, 14, 15]
    assert [bool(each.error) for each in replies.values()] == [n in (3, 5) for n in range(1, 8)]


def test_what_a_program_raises_is_the_error_of_its_question(tmp_path: Path, links: Links) -> None:
    """The others are answered, by the same process, and nothing of it is kept."""
    main = """
from servioticy_operator import serve
def some(event, state):
    state.put("seen", True)
    return {"value": 10 / event.value("value")}
serve(some)
"""
    with node_of({PROGRAM: write(tmp_path / "a", main)}, tmp_path, links=links) as node:
        found = answers(node, [question(number) for number in (1, 0, 2)])
        restarts = node.running()[0].restarts

    assert "ZeroDivisionError" in found[b"q0"].error
    assert (found[b"q0"].outputs, found[b"q0"].state) == ((), None)
    assert found[b"q1"].error == found[b"q2"].error == ""
    assert restarts == 0


def test_a_question_that_ends_its_process_is_to_blame_alone(tmp_path: Path, links: Links) -> None:
    """Those that came with it are asked again, of another process, and answered."""
    main = """
import os
from servioticy_operator import serve
def some(event, state):
    if event.value("value") == 3:
        print("I go now")
        os._exit(7)
    return event.channels
serve(some)
"""
    with node_of({PROGRAM: write(tmp_path / "a", main)}, tmp_path, links=links) as node:
        found = answers(node, [question(number) for number in range(6)])

    assert list(found) == [b"q%d" % number for number in range(6)]
    assert found[b"q3"].error == "it has ended: I go now"
    assert [each.error for each in found.values()].count("") == 5


def test_a_process_that_dies_once_is_begun_again(tmp_path: Path, links: Links) -> None:
    """With the state as of the last commit; nobody is told."""
    folder = write(tmp_path / "a", COUNT)
    with node_of({PROGRAM: folder}, tmp_path, links=links) as node:
        first = answers(node, [question(1)])[b"q1"]
        pid = node.running()[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        second = answers(node, [question(2, state=first.state)])[b"q2"]
        until(lambda: node.running()[0].restarts == 1)

    assert second.outputs[0].channels == b'{"count":2}'


NAUGHTY = {
    "answers another id": 'say({"replies": [{"id": "99"}]})',
    "answers twice": 'say({"replies": [{"id": asked[0]["id"]}] * 2})',
    "sends too long a frame": 'connection.sendall(b"\\xff" * 8)',
    "sends half a frame": 'connection.sendall(b"\\0\\0\\1\\0half"); sys.exit()',
    "never ends its frame": 'connection.sendall(b"\\0\\0\\1\\0half"); time.sleep(1000)',
    "sends no JSON": 'send(b"{{{")',
    "sends deep JSON": 'send(b"[" * 100000)',
    "sends another shape": 'say({"replies": {"id": 1}})',
    "sends fields of its own": 'say({"replies": [], "more": 1})',
    "sends empty frames": "while True: say({})",
    "is ready again and again": 'while True: say({"ready": True})',
    "says nothing": "time.sleep(1000)",
    "computes for ever": "while True: pass",
    "sends a number of a megabyte": """
send(b'{"replies": [{"id": "1", "state": ' + b"1" * 1000000 + b"}]}")""",
    "allocates for ever": "kept = [bytearray(1 << 20) for _ in range(1 << 20)]",
}

OF_FRAMES = {
    *("sends too long a frame", "sends half a frame", "never ends its frame", "sends no JSON"),
    *("sends empty frames", "is ready again and again", "computes for ever"),
}
"""Those that whoever carries frames has to do with."""


def test_who_sends_what_is_no_answer_is_ended(tmp_path: Path, links: Links) -> None:
    """Its question gets an error, the neighbour's is answered."""
    limits = {"answer": "400ms", "memory": "64MiB"}
    folders, names = {}, {}
    tried = NAUGHTY if isinstance(links, Pairs) else OF_FRAMES
    for tenant, (name, body) in enumerate(((each, NAUGHTY[each]) for each in tried), 2):
        main = raw(f'say({{"ready": True}})\nasked = read()\n{body}\nread()')
        program = Program(tenant, "naughty", 1)
        folders[program] = write(tmp_path / f"{tenant}", main, limits=limits)
        names[program] = name
    folders[PROGRAM] = write(tmp_path / "good", ECHO)
    with node_of(folders, tmp_path, Bounds(4), links=links) as node:
        found = answers(node, [question(each.tenant, each) for each in folders])
        told = {each.program: each for each in node.running()}

    assert found[b"q1"].error == ""
    for program, name in names.items():
        assert found[b"q%d" % program.tenant].error, name
        assert told[program].restarts >= 2, name
        assert told[program].problem, name


def test_an_answer_to_what_was_answered_before_ends_the_process(
    tmp_path: Path, links: Links
) -> None:
    """And what it was asked meanwhile is asked again, of another one."""
    main = raw("""
say({"ready": True})
asked = read()
say({"replies": [{"id": each["id"]} for each in asked]})
read()
say({"replies": [{"id": asked[0]["id"]}]})
read()
""")
    with node_of({PROGRAM: write(tmp_path / "a", main)}, tmp_path, links=links) as node:
        assert answers(node, [question(1)])[b"q1"].error == ""
        assert answers(node, [question(2)])[b"q2"].error == ""
        assert node.running()[0].restarts == 1


WRONG = {
    "an event that was not asked": {"outputs": [{"event": 1, "channels": {}}]},
    "an event before the first": {"outputs": [{"event": -1, "channels": {}}]},
    "a time before all": {"outputs": [{"event": 0, "timestamp": -1, "channels": {}}]},
    "a state of more than 64 KiB": {"state": "x" * 65_535},
    "too many outputs": {"outputs": [{"event": 0, "channels": {}}] * 10_001},
    "more than 4 MiB": {"outputs": [{"event": 0, "channels": {"a": "x" * 2_200_000}}] * 2},
}


def test_an_answer_that_breaks_a_rule_is_an_error_of_its_question(
    tmp_path: Path, links: Links
) -> None:
    """The process goes on; what the composite keeps stays as it was."""
    main = raw("""
say({"ready": True})
wrong = json.load(open("wrong"))
while True:
    for each in read():
        say({"replies": [{"id": each["id"], **wrong[each["events"][0]["channels"]["value"]]}]})
""")
    folder = write(tmp_path / "a", main)
    (folder / "wrong").write_text(json.dumps(list(WRONG.values())))
    with node_of({PROGRAM: folder}, tmp_path, links=links) as node:
        asked = [question(number, state=b'{"a":1}') for number in range(len(WRONG))]
        found = answers(node, asked)
        restarts = node.running()[0].restarts

    for name, reply in zip(WRONG, found.values(), strict=True):
        assert reply.error, name
        assert (reply.outputs, reply.state) == ((), b'{"a":1}'), name
    assert restarts == 0


def test_the_largest_answers_are_taken(tmp_path: Path, links: Links) -> None:
    """At their borders: a state of 64 KiB and 10,000 outputs."""
    main = raw("""
say({"ready": True})
for each in read():
    outputs = [{"event": 0, "channels": {}}] * 10000
    say({"replies": [{"id": each["id"], "outputs": outputs, "state": "x" * 65534}]})
read()
""")
    with node_of({PROGRAM: write(tmp_path / "a", main)}, tmp_path, links=links) as node:
        reply = answers(node, [question(1)])[b"q1"]

    assert reply.error == ""
    assert len(reply.outputs) == 10_000
    assert len(reply.state or b"") == 65_536


def test_a_program_that_does_not_begin_says_so_to_its_questions(tmp_path: Path) -> None:
    """With the end of what it printed; one that has ended at its start thrice is not tried on."""
    folder = write(tmp_path / "a", "import nothing_like_this")
    with node_of({PROGRAM: folder}, tmp_path) as node:
        found = answers(node, [question(1), question(2)])
        running = node.running()[0]

    assert "ModuleNotFoundError" in found[b"q1"].error
    assert "ModuleNotFoundError" in found[b"q2"].error
    assert b"Traceback" in running.printed
    assert running.restarts == 3


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["./none"], "there is no file ./none"),
        (["../../../bin/sh"], "there is no file"),
        (["no-such-language"], "there is no no-such-language on this machine"),
    ],
)
def test_a_command_that_is_not_there_is_told(
    tmp_path: Path, command: list[str], reason: str
) -> None:
    """At once: to begin it again would not help."""
    with node_of({PROGRAM: write(tmp_path / "a", "", command=command)}, tmp_path) as node:
        assert reason in answers(node, [question(1)])[b"q1"].error


def test_who_is_not_there_gets_an_error(tmp_path: Path) -> None:
    """It may have been removed since the document was sent."""
    with node_of({}, tmp_path) as node:
        assert answers(node, [question(1)])[b"q1"].error == "there is no operator tried"


def test_places_go_from_tenant_to_tenant(tmp_path: Path) -> None:
    """One place, three tenants, of whom the first asks without an end: all are answered."""
    folder = write(tmp_path / "a", ECHO)
    programs = [Program(tenant, "tried", 1) for tenant in (1, 2, 3)]
    with node_of(dict.fromkeys(programs, folder), tmp_path, Bounds(1)) as node:
        numbers = iter(range(1_000_000))
        answered: set[int] = set()
        waiting = {next(numbers): programs[0] for _ in range(50)}
        waiting |= {next(numbers): each for each in programs[1:]}
        for number, program in waiting.items():
            assert node.ask(question(number, program))
        end = time.monotonic() + SECONDS
        while not {2, 3} <= answered and time.monotonic() < end:
            for reply in node.replies(1.0):
                program = waiting.pop(int(reply.id[1:]))
                answered.add(program.tenant)
                if program.tenant == 1:
                    waiting[number := next(numbers)] = program
                    assert node.ask(question(number, program))

    assert {2, 3} <= answered


def test_no_tenant_has_all_places(tmp_path: Path) -> None:
    """However many programs it has: some of it wait while a place is free."""
    folder = write(tmp_path / "a", ECHO)
    programs = [Program(1, f"tried-{number}", 1) for number in range(4)]
    with node_of(dict.fromkeys(programs, folder), tmp_path, Bounds(4)) as node:
        most = 0
        for number, each in enumerate(programs):
            assert node.ask(question(number, each))
        found: list[bytes] = []
        end = time.monotonic() + SECONDS
        while len(found) < len(programs) and time.monotonic() < end:
            found += [each.id for each in node.replies(0.05)]
            most = max(most, sum(each.pid is not None for each in node.running()))

    assert len(found) == 4
    assert most == 2


def test_who_is_forgotten_ends_and_answers_no_more(tmp_path: Path, links: Links) -> None:
    """And the room that its questions took is there again."""
    main = "import time\nfrom servioticy_operator import serve\nserve(lambda *_: time.sleep(1000))"
    with node_of({PROGRAM: write(tmp_path / "a", main)}, tmp_path, links=links) as node:
        assert node.ask(question(1))
        until(lambda: node.running()[0].state == "serving")
        pid = node.running()[0].pid
        node.forget(PROGRAM)
        until(lambda: node.room_taken == 0)
        until(lambda: _is_dead(pid))

        assert node.running() == []
        assert node.replies(0.0) == []


def test_more_than_there_is_room_for_is_not_taken(tmp_path: Path) -> None:
    """And is when what was answered has been fetched; another tenant finds room all the time."""
    folder = write(tmp_path / "a", ECHO)
    size = QUESTION_BYTES + len(question(1).events[0]) + len("so/s")
    other = Program(2, "tried", 1)
    with node_of({PROGRAM: folder, other: folder}, tmp_path, room=Room(4 * size)) as node:
        assert node.ask(question(1))
        assert node.ask(question(2))
        assert not node.ask(question(3))
        assert node.ask(question(4, other))
        fetched(node, 3)
        assert node.ask(question(5))
        fetched(node, 1)
        assert node.room_taken == 0


def test_what_is_too_large_is_no_question(tmp_path: Path) -> None:
    """Whoever asks has to look at it before."""
    with node_of({}, tmp_path) as node:
        for wrong in (
            question(1)._replace(events=[]),
            question(1)._replace(events=[b"{}"] * 10_001),
            question(1)._replace(events=[b" " * (4 * 1024 * 1024 + 1)]),
            question(1)._replace(state=b" " * 65_537),
            question(1)._replace(id=b" " * 65),
        ):
            with pytest.raises(ValueError, match=r"events|state|id"):
                node.ask(wrong)


def test_the_end_of_what_is_printed_is_kept(tmp_path: Path) -> None:
    """And who prints without an end is held back, and answers all the same."""
    main = """
import threading
from servioticy_operator import serve
def flood():
    while True: print("x" * 1000)
threading.Thread(target=flood, daemon=True).start()
serve(lambda event, state: event.channels)
"""
    with node_of({PROGRAM: write(tmp_path / "a", main)}, tmp_path) as node:
        found = answers(node, [question(number) for number in range(20)])
        until(lambda: len(node.running()[0].printed) == 16_384)

    assert [each.error for each in found.values()] == [""] * 20


def test_a_program_may_be_asked_in_bulk(tmp_path: Path, links: Links) -> None:
    """What has come for several composites together is one call, each with its own state."""
    main = """
from servioticy_operator import serve
def all_of_them(events):
    for event in events:
        event.state.put("composite", event.composite)
        event.outputs.append({"together": len(events)})
serve(batch=all_of_them)
"""
    folder = write(tmp_path / "a", main, batch={"max": 6, "wait": "5s"})
    with node_of({PROGRAM: folder}, tmp_path, links=links) as node:
        asked = [question(each, composite=f"so/{each}", values=[1, 2]) for each in range(3)]
        found = answers(node, asked)

    for number in range(3):
        reply = found[b"q%d" % number]
        assert [each.channels for each in reply.outputs] == [b'{"together":6}'] * 2
        assert reply.state == b'{"composite":"so/%d"}' % number


def test_messagepack_is_another_spelling_of_the_same(tmp_path: Path, links: Links) -> None:
    """As the manifest says; the kits speak JSON."""
    import msgspec

    main = raw("""
import struct
def packed(text): return bytes([0xa0 | len(text)]) + text.encode()
send(b"\\x81" + packed("ready") + b"\\xc3")
head = stream.read(4)
come = stream.read(struct.unpack(">I", head)[0])
assert come[:11] == b"\\x81\\xa9questions", come
name = come[come.index(b"\\xa2id") + 3 :][:2]
outputs = b"\\x91\\x82" + packed("event") + b"\\x00" + packed("channels") + b"\\x81" + packed("a")
outputs += b"\\xcb" + struct.pack(">d", 2.5)
reply = b"\\x82" + packed("id") + name + packed("outputs") + outputs
send(b"\\x81" + packed("replies") + b"\\x91" + reply)
stream.read(1)
""")
    folder = write(tmp_path / "a", main, message="msgpack")
    assert msgspec.msgpack.encode({"id": "1"}) == b"\x81\xa2id\xa11"
    with node_of({PROGRAM: folder}, tmp_path, links=links) as node:
        reply = answers(node, [question(1)])[b"q1"]

    assert reply.error == ""
    assert reply.outputs == [ProgramOutput(0, None, b'{"a":2.5}')]


def test_idle_processes_end(tmp_path: Path, links: Links) -> None:
    """And another one is begun when something comes."""
    folder = write(tmp_path / "a", ECHO)
    with node_of({PROGRAM: folder}, tmp_path, Bounds(idle_seconds=0.0), links=links) as node:
        answers(node, [question(1)])
        until(lambda: node.running()[0].state == "ended")

        assert answers(node, [question(2)])[b"q2"].error == ""


def test_programs_end_with_a_platform_that_is_killed(tmp_path: Path) -> None:
    """By kill -9: nothing of it could say so to anybody."""
    folder = write(tmp_path / "a", ECHO)
    tells = "import os, time; from pathlib import Path"
    script = f"""
{tells}
from operator_folders import *
from operator_folders import PROGRAM
with node_of({{PROGRAM: Path({str(folder)!r})}}, Path({str(tmp_path)!r})) as node:
    answers(node, [question(1)])
    print(node.running()[0].pid, flush=True)
    time.sleep(1000)
"""
    ours = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ours.stdout is not None
    pid = int(ours.stdout.readline())
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ours.kill()
    ours.wait()

    assert children
    for each in [pid, *map(int, children)]:
        until(lambda each=each: _is_dead(each))


def _is_dead(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True
