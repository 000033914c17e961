"""Which updates of others' streams are in a pane is noted in small entries, and found again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from windowed_composite import Composite, windows

from sandbox.trees import Kept
from servioticy.domain.evaluators.operators import Entries, Nothing
from servioticy.domain.evaluators.windows import contents, seen, timed
from servioticy.domain.evaluators.windows.seen import Noted, Seen

KEY = b"0.1.0"
TUMBLING = {"type": "tumbling", "size": "100s"}


class OfOthers(Composite):
    """A stream over windows of two streams, of which `b` is another tenant's."""

    outside = frozenset({"b"})

    def noted(self) -> list[bytes]:
        """The keys under which it is noted what `b` has sent."""
        return [key for key in self.entries if seen.DIRECTORY in key or b".s" in key]


class Notes:
    """What is noted of an input in some panes, in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, bytes], Kept] = {}
        self.known: dict[bytes, Noted] = {}
        self.written = 0
        """Bytes that the last one has written."""

    def has(self, stream: str, at: int, key: bytes = KEY) -> bool:
        return Seen(self._entries()).may_have(key, self.known.get(key, Noted()), stream, at)

    def note(self, stream: str, at: int, key: bytes = KEY) -> None:
        entries = self._entries()
        known = self.known.get(key, Noted())
        self.known[key] = Seen(entries).note(key, known, stream, at)
        self._keep(entries)

    def join(self, *keys: bytes, most: int = seen.MOST_LEAVES) -> Noted:
        """Into the first one."""
        entries = self._entries()
        several = [(key, self.known.get(key, Noted())) for key in keys]
        self.known[keys[0]] = Seen(entries).join(several, keys[0], most)
        self._keep(entries)
        return self.known[keys[0]]

    def keys(self, key: bytes = KEY) -> list[bytes]:
        """Those that there are."""
        return sorted(each for _, each in self.kept if each.startswith(key + seen.DIRECTORY))

    def _entries(self) -> Entries:
        return Entries(0, Nothing(self.kept))

    def _keep(self, entries: Entries) -> None:
        self.written = sum(len(each.value or b"") for each in entries.changed)
        for each in entries.changed:
            if each.value is None:
                self.kept.pop((0, each.key), None)
            else:
                self.kept[0, each.key] = each


SENT = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 30)), max_size=60)


@given(SENT, SENT)
def test_what_is_noted_is_found_and_nothing_else(sent: Any, others: Any) -> None:
    """In whatever order it came, and where what several have becomes one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seen, "LEAF", 4)
        notes = Notes()
        for key, updates in ((KEY, sent), (b"0.2.0", others)):
            for each in updates:
                notes.note(*each, key)
        for at in range(-10, 32):
            assert [notes.has(name, at) for name in "abc"] == [
                (name, at) in sent for name in "abc"
            ]
        assert notes.keys() == sorted(seen.keys(KEY, notes.known.get(KEY, Noted())))
        if not sent:
            return
        joined = notes.join(KEY, b"0.2.0")
        for at in range(-10, 32):
            assert [notes.has(name, at) for name in "abc"] == [
                (name, at) in sent or (name, at) in others for name in "abc"
            ]
        assert notes.keys() == sorted(seen.keys(KEY, joined))
        assert seen.noted(joined.written) == joined


def test_an_update_writes_a_leaf_however_many_there_are() -> None:
    """And where one is full two, and which begins where."""
    notes = Notes()
    written = []
    for at in range(5000):
        notes.note("a", at)
        written.append(notes.written)
    leaves = 1 + 4999 // seen.LEAF

    assert notes.known[KEY] == Noted(leaves)
    assert sorted(written)[-leaves] <= seen.LEAF * 16
    assert max(written) <= seen.LEAF * 16 + 16 + leaves * 18
    assert sum(written) / len(written) < 600


def test_at_the_border_what_is_older_may_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "LEAF", 2)
    monkeypatch.setattr(seen, "MOST_LEAVES", 3)
    notes = Notes()
    for at in range(6):
        notes.note("a", at)
    assert (notes.known[KEY], notes.has("b", 3)) == (Noted(3), False)
    notes.note("a", 5)
    assert notes.known[KEY] == Noted(3), "it is there"
    notes.note("a", 6)

    assert notes.known[KEY] == Noted(3, is_full=True)
    assert notes.has("b", 3)
    assert seen.noted(notes.known[KEY].written) == notes.known[KEY]
    notes.note("a", 7)
    assert notes.written == 0
    assert notes.keys() == sorted(seen.keys(KEY, notes.known[KEY]))


@pytest.mark.parametrize(("most", "is_full"), [(2, False), (1, True)])
def test_what_becomes_one_has_so_many_leaves_at_most(
    monkeypatch: pytest.MonkeyPatch, most: int, is_full: bool
) -> None:
    """Beyond that it is as where there is no more room."""
    monkeypatch.setattr(seen, "LEAF", 2)
    notes = Notes()
    for at in range(2):
        notes.note("a", at)
        notes.note("b", at, b"0.2.0")

    assert notes.join(KEY, b"0.2.0", most=most).is_full == is_full
    assert notes.has("c", 1) == is_full
    assert notes.keys() == sorted(seen.keys(KEY, notes.known[KEY]))


def test_a_pane_with_more_than_one_computation_gives_up_goes_by_and_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is noted goes first; nothing is left, and no update is refused for it."""
    monkeypatch.setattr(seen, "LEAF", 2)
    monkeypatch.setattr(timed, "MAX_DROPPED", 5)
    c = OfOthers(TUMBLING, "a", "b")
    for at in range(40):
        assert c.put(at, member="b").kind == "collected"
    before = len(c.noted())
    assert windows(c.put(150, member="b")) == [(0, 100, 40)]
    left = [len(c.noted())]
    while c.due is not None and c.due < 160 and len(left) < 30:
        c.tick(c.due)
        left.append(len(c.noted()))

    assert before == 21
    assert [one - other for one, other in zip([before + 1, *left], left, strict=False)][:3] == [
        *(4, 4, 4)
    ]
    assert left[-1] == 1, "that of the window that is open"


@pytest.mark.parametrize("kind", ["tumbling", "session"])
def test_what_a_release_before_has_noted_may_be_anything(kind: str) -> None:
    """Until its windows are over; and then it goes with them."""
    window = TUMBLING if kind == "tumbling" else {"type": "session", "gap": "20s"}
    c = OfOthers(window, "a", "b")
    for at in (1, 3, 5):
        c.put(at, member="b")
    (number,) = {int(key.split(b".")[1]) for key in c.noted()}
    key = b"0.%d.1" % number
    for each in c.noted():
        del c.entries[each]
    pane = contents._panes.decode(c.entries[key][0])
    pane.noted, pane.seen = 0, 0b101
    c.entries[key] = contents._encoder.encode(pane), None
    c.entries[key + b".s0"] = c.entries[key + b".s2"] = b"12345678", None

    assert c.put(4, member="b").kind == "stale"
    assert c.put(7, member="b").kind == "collected"
    found = windows(c.put(150, member="b"))
    assert [count for *_, count in found] == [4]
    c.tick(151)
    assert not [each for each in c.entries if each.startswith(key)]


def test_sessions_that_were_told_and_kept_no_more_still_know_both() -> None:
    """Of what is discarded it stays known which of others' updates it had."""
    window = {"type": "session", "gap": "5s", "emit": "updates", "revisions": "discard"}
    c = OfOthers(window, "a", "b")
    for at in (1, 9):
        c.put(at, member="b")
    assert c.put(5, member="b").outputs

    assert [c.put(at, 7, member="b").kind for at in (1, 5, 9)] == ["stale"] * 3
