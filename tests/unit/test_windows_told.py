"""What windows have told: taken back before they tell more, or discarded; and what they note."""

from __future__ import annotations

from typing import Any

import pytest
from windowed_composite import BASE, STREAM, Composite, windows

from sandbox.revisions import Revision, revision_of
from servioticy.domain.documents.windows import parse_window
from servioticy.domain.evaluators.operators import Answer, Ends
from servioticy.domain.evaluators.windows.head import (
    HEAD,
    MAX_PANES,
    Head,
    Member,
    Pane,
    panes_that_fit,
    write,
)

TUMBLING = {"type": "tumbling", "size": "10s"}
LATE = TUMBLING | {"lateness": "20s"}
SESSION = {"type": "session", "gap": "5s", "delay": "9s"}
RETRACT = {"emit": "updates", "revisions": "retract"}
DISCARD = {"emit": "updates", "revisions": "discard"}
LONG = {"type": "tumbling", "size": "1s", "delay": "2h"}


def told(answer: Answer) -> list[Revision | None]:
    return [revision_of(each.document) for each in answer.outputs]


def test_what_was_told_is_taken_back_before_the_new_value() -> None:
    c = Composite(LATE | RETRACT)
    first, second = c.put(1), c.put(2)
    assert told(first) == [Revision(1, early=True)]
    assert told(second) == [Revision(1, early=True, retracted=True), Revision(2, early=True)]
    assert windows(second) == [(0, 10, 1), (0, 10, 2)]
    assert {each.timestamp for each in second.outputs} == {BASE + 9}
    assert told(c.put(12))[:2] == [Revision(2, early=True, retracted=True), None]
    late = c.put(3)
    assert windows(late) == [(0, 10, 2), (0, 10, 3)]
    assert told(late) == [Revision(2, early=False, retracted=True), Revision(3, early=False)]
    c.put(60)
    assert [key for key in c.entries if b".r" in key] == [b"0.r%d" % (BASE + 70)]


def test_a_former_value_is_the_same_document_but_for_its_mark() -> None:
    """So the same code makes the same result of it."""
    c = Composite(TUMBLING | RETRACT, code="a.updates")
    before = c.put(1, 7).outputs[0].document
    former = c.put(2, 8).outputs[0].document
    assert former == before[:-1] + b',"retracted":true}'


def test_what_sessions_told_that_became_one_is_taken_back_at_once() -> None:
    c = Composite(SESSION | RETRACT)
    c.put(0)
    c.put(7)
    answer = c.put(4)
    assert windows(answer) == [(7, 12, 1), (0, 5, 1), (0, 12, 3)]
    assert [each and each.retracted for each in told(answer)] == [True, True, False]
    assert len([key for key in c.entries if b".r" in key]) == 1


def test_a_version_that_cuts_otherwise_keeps_nothing_of_what_was_told() -> None:
    c = Composite(TUMBLING | RETRACT)
    c.put(1)
    c.be(TUMBLING | {"size": "20s"})
    c.put(2)
    assert not [key for key in c.entries if b".r" in key]


def test_what_is_too_large_is_not_taken_back() -> None:
    c = Composite(TUMBLING | RETRACT, "a", "b", code="a.updates")
    c.put(1, "x" * 40_000, at=1)
    assert told(c.put(2, "y" * 30_000, "b", at=2)) == [
        Revision(1, early=True, retracted=True),
        Revision(2, early=True),
    ]
    assert told(c.put(3, 1, at=3)) == [Revision(3, early=True)]


def test_what_is_stored_goes_however_large_it_was() -> None:
    """Nobody is told what it was; the row of its timestamp is known all the same."""
    c = Composite({"type": "session", "gap": "5s", "lateness": "20s"}, "a", "b", code="a.updates")
    c.put(0, "x" * 40_000, at=0)
    c.put(1, "y" * 30_000, "b", at=1)
    for member in ("a", "b"):
        c.put(20, member=member)
    gone, instead = c.put(3, at=20).outputs

    assert (gone.timestamp - BASE, gone.document) == (5, b"")
    assert instead.timestamp - BASE == 7


def test_only_what_is_new_comes_out_where_the_rest_is_discarded() -> None:
    c = Composite(LATE | DISCARD)
    found = [c.put(1), c.put(2), c.put(12), c.put(3), c.put(40)]
    assert list(map(windows, found)) == [
        [(0, 10, 1)],
        [(0, 10, 1)],
        [(10, 20, 1)],
        [(0, 10, 1)],
        [(40, 50, 1)],
    ], "and nothing where nothing is new"
    assert [each and each.number for each in told(found[3])] == [3], "it grows all the same"


def test_the_first_time_it_is_all() -> None:
    c = Composite(LATE | {"revisions": "discard"})
    c.put(1)
    c.put(2)
    assert windows(c.put(12)) == [(0, 10, 2)]
    assert windows(c.put(3)) == [(0, 10, 1)]


def test_sessions_discard_as_well_and_so_do_their_parts() -> None:
    c = Composite(SESSION | DISCARD)
    assert windows(c.put(0)) == [(0, 5, 1)]
    assert windows(c.put(7)) == [(7, 12, 1)]
    answer = c.put(4)
    assert windows(answer) == [(0, 12, 1)]
    assert told(answer) == [Revision(3, early=True)]
    assert windows(c.put(40)) == [(40, 45, 1)]


def test_a_late_update_extends_a_session_that_is_out() -> None:
    c = Composite({"type": "session", "gap": "5s", "lateness": "20s"})
    for at in (0, 2, 20):
        last = c.put(at)
    assert windows(last) == [(0, 7, 2)]
    same = c.put(1)
    assert (windows(same), told(same)) == ([(0, 7, 3)], [Revision(3, early=False)])
    longer = c.put(6)
    assert windows(longer) == [(0, 7, 3), (0, 11, 4)]
    assert told(longer) == [Revision(3, early=False, retracted=True), None]
    assert [each.timestamp - BASE for each in longer.outputs] == [6, 10]


def test_a_late_update_makes_one_of_two_sessions_that_are_out() -> None:
    c = Composite({"type": "session", "gap": "5s", "lateness": "20s"})
    for at in (0, 8, 20):
        c.put(at)
    answer = c.put(4)
    assert windows(answer) == [(8, 13, 1), (0, 5, 1), (0, 13, 3)]
    assert told(answer) == [
        Revision(1, early=False, retracted=True),
        Revision(1, early=False, retracted=True),
        Revision(3, early=False),
    ]
    assert [each.timestamp - BASE for each in answer.outputs] == [12, 4, 12]


def test_a_session_that_is_open_again_comes_out_at_its_end() -> None:
    c = Composite({"type": "session", "gap": "5s", "lateness": "20s"}, "a", "b")
    c.put(0, at=20)
    c.put(7, member="b", at=20)
    assert windows(c.put(7, at=21)) == [(0, 5, 1)]
    answer = c.put(4, at=22)
    assert told(answer) == [Revision(1, early=False, retracted=True)]
    assert c.told()["open"] == [{"start": BASE, "end": BASE + 12}]
    c.put(13, at=23)
    assert windows(c.put(13, member="b", at=23)) == [(0, 12, 4)]


def test_sessions_take_in_what_is_late_until_their_lateness_is_over() -> None:
    c = Composite({"type": "session", "gap": "5s", "lateness": "20s", "idle": "9s"})
    c.put(0)
    c.put(24)
    assert windows(c.put(1)) == [(0, 5, 1), (0, 6, 2)]
    c.put(40)
    assert c.put(2).kind == "late", "40 is more than 6 and 20"
    assert windows(c.tick(49)) == [(40, 45, 1)]
    c.tick(c.due or 0)
    assert list(c.entries) == [HEAD]
    assert c.due is None


def test_the_first_late_one_of_its_time_is_a_revision() -> None:
    c = Composite({"type": "session", "gap": "5s", "lateness": "50s"})
    c.put(10)
    c.put(30)
    answer = c.put(2)
    assert (windows(answer), told(answer)) == ([(2, 7, 1)], [Revision(1, early=False)])


def test_several_windows_are_discarded_a_few_at_a_time() -> None:
    """What changes with them has to be one computation's."""
    names = [f"s{number}" for number in range(16)]
    window = {"type": "tumbling", "size": "1s", "lateness": "50s", "revisions": "discard"}
    c = Composite(window, *names, code="a.updates")
    for number in range(320):
        c.put(number // 16, member=names[number % 16], at=0)
    made = [windows(c.put(21, member=name, at=30)) for name in names]
    for _ in range(50):
        if c.due is None or c.due > 40:
            break
        made.append(windows(c.tick(c.due)))
    assert max(map(len, made)) == 12
    assert sum(map(len, made)) == 20


@pytest.mark.parametrize("members", [["a"], [f"{number}" + "x" * 250 for number in range(32)]])
@pytest.mark.parametrize(
    ("more", "least"),
    [
        ({}, 2_000),
        ({"emit": {"every": "2h"}}, 1_200),
        (RETRACT | {"lateness": "9s"}, 700),
        ({"type": "session", "gap": "1s"} | RETRACT, 800),
        ({"type": "session", "gap": "1s"}, 2_000),
    ],
)
def test_a_head_is_one_entry_however_much_is_noted_of_open_windows(
    more: dict[str, Any], least: int, members: list[str]
) -> None:
    """With the largest numbers that there are, and as many windows as panes may have."""
    content = {
        key: each for key, each in (LONG | more).items() if key != "size" or "gap" not in more
    }
    window = parse_window(STREAM, content, [])
    most = panes_that_fit(window, members)
    assert most == least if least == MAX_PANES and len(members) == 1 else most >= least * 0.8
    at = [10**19 - number for number in range(most, 0, -1)]
    several = [10**19 + number for number in range(most + 100)]
    told = window.revisions == "retract"
    head = Head(
        bytes(8),
        len(members),
        1000,
        10**19,
        10**19,
        panes=[Pane(each, each, each) for each in at],
        members={each: Member(10**19, 10**19, 10**19) for each in members},
        early=dict(zip(at, at, strict=True)) if window.early is not None else {},
        changed=dict(zip(at, at, strict=True)) if window.lateness else {},
        told=several if told else [],
        parts=at if told and window.kind == "session" else [],
    )
    assert len(write(head)) < 65_536


def test_no_more_are_open_than_fit() -> None:
    names = [f"{number}" + "x" * 1_800 for number in range(32)]
    most = panes_that_fit(parse_window(STREAM, LONG, []), names)
    assert most < 200
    c = Composite(LONG, *names)
    with pytest.raises(Ends, match=f"more than {most} panes of windows are open"):
        for number in range(most + 1):
            c.put(number, member=names[number % 32], at=4_000)
    assert 50_000 < len(c.entries[HEAD][0]) < 65_536
