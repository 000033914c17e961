"""Steps of a trace: in its sequence where they are about one update, by links where of several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import woven_steps
from woven_steps import Update, first, whole

from command import cli
from monitoring.analysis import tracing
from monitoring.analysis.steps import TooMany, tails
from monitoring.analysis.tracing import traced
from monitoring.configuration import Aspect
from monitoring.following import Following
from monitoring.model import ResourceProfile, RuntimePerformance
from monitoring.outbox import MOST_BYTES_EACH, Outbox
from monitoring.sequences import AROUND, LOTS, MOST_LINKS, MOST_LOOKED_AT, lot_of
from monitoring.weaving import recorder
from monitoring.weaving.weaver import Weaver
from servioticy.domain.traces import MAKING, id_of, read, step_of

NAME = woven_steps.__name__
TRACES = [f"{number:032x}" for number in range(1, 2000)]
STEP = "00f067aa0ba902b7"
EACH = "updates.*.trace"


def context(number: int) -> str:
    return f"00-{TRACES[number]}-{STEP}-01"


def about(*numbers: int | None) -> list[Update]:
    return [Update(7, "" if each is None else context(each)) for each in numbers]


class Woven:
    """A weaver, and what comes of it."""

    def __init__(self) -> None:
        self.weaver, self.outbox = Weaver("here/tests/1"), Outbox()

    def weave(self, *aspects: Aspect) -> None:
        self.weaver.weave(aspects, self.outbox)

    def told(self) -> list[RuntimePerformance]:
        taken = self.outbox.take(10_000)
        return [each for each in taken if isinstance(each, RuntimePerformance)]


@pytest.fixture
def woven() -> Iterator[Woven]:
    made = Woven()
    yield made
    made.weaver.unweave()


def test_a_call_about_one_update_is_a_step_of_its_trace(woven: Woven) -> None:
    """Each step is part of the one around it, the outermost of the one that the context names."""
    woven.weave(Aspect(f"{NAME}.whole", sequence=EACH), Aspect(f"{NAME}.first", sequence=EACH))
    whole(about(0))
    inner, outer = woven.told()

    assert inner.sequence == outer.sequence == TRACES[0]
    assert outer.parent == STEP
    assert inner.parent == outer.step != inner.step
    assert inner.links == outer.links == ()


def test_a_call_about_several_has_links_to_all_that_have_a_trace(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.first", sequence=EACH))
    first(about(0, None, 1, 1))
    (step,) = woven.told()

    assert step.sequence not in TRACES
    assert step.links == (f"{TRACES[0]}-{STEP}", f"{TRACES[1]}-{STEP}")


def test_a_call_about_none_that_has_a_trace_is_as_ever(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.first", sequence=EACH))
    for some in ([], about(None), about(None, None), [Update(7, "00-what-ever")] * 2):
        first(some)

    told = woven.told()
    assert [each.links for each in told] == [()] * 4
    assert len({each.sequence for each in told}) == 4


def test_links_are_bounded_and_take_their_room(woven: Woven) -> None:
    """Nor is more looked at, however large a batch is."""
    woven.outbox.hold(9 * MOST_BYTES_EACH)
    woven.weave(Aspect(f"{NAME}.first", sequence=EACH))
    first(about(*range(MOST_LINKS + 1)))
    first(about(0))
    first(about(*[None] * MOST_LOOKED_AT, 0))
    step, *others = woven.told()

    assert len(step.links) == MOST_LINKS
    assert others == []
    assert woven.outbox.dropped == 2
    first(about(*[None] * MOST_LOOKED_AT, 0))
    assert [each.links for each in woven.told()] == [()]


def test_what_waits_is_taken_whatever_room_it_has(woven: Woven) -> None:
    woven.weave(Aspect(f"{NAME}.first", sequence=EACH))
    for _ in range(3):
        first(about(*range(MOST_LINKS)))

    assert [len(woven.outbox.take(1)) for _ in range(4)] == [1, 1, 1, 0]


def test_a_trace_is_sampled_in_every_batch_that_it_is_in(woven: Woven) -> None:
    """By its own id: a part of all traces is whole."""
    woven.weave(Aspect(f"{NAME}.first", sequence=EACH, sample=0.5))
    alone = set()
    for number in range(64):
        first(about(number))
        alone |= {each.sequence for each in woven.told()}
    assert 0 < len(alone) < 64
    for number in range(64):
        first(about(number, number + 1))
        told = woven.told()
        if {TRACES[number], TRACES[number + 1]} & alone:
            assert len(told) == 1


def lots(numbers: range) -> list[int]:
    """Those numbers, the trace of the least lot first."""
    return sorted(numbers, key=lambda each: lot_of(TRACES[each]))


def between(one: int, other: int) -> float:
    """A sample that has the one's trace and not the other's."""
    return (lot_of(TRACES[one]) + lot_of(TRACES[other])) / 2 / LOTS


def test_a_trace_that_is_sampled_has_its_step_behind_however_many_others(woven: Woven) -> None:
    """What is told of the call names it alone: of the others nothing else is told."""
    least, second, *rest = lots(range(4 * MOST_LINKS))
    sample = between(least, second)
    woven.weave(Aspect(f"{NAME}.first", sequence=EACH, sample=sample))
    for _ in range(20):  # the call's own sequence may be sampled, too: with it nothing differs
        first(about(second, *rest, least))
    told = woven.told()

    assert [each.links for each in told] == [(f"{TRACES[least]}-{STEP}",)] * 20


def test_what_a_batch_calls_is_measured_as_the_batch_is(
    woven: Woven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it does not say what it is about."""
    least, second, *_, most = lots(range(50))
    monkeypatch.setattr(recorder, "fresh", lambda: TRACES[most])
    sample = between(least, second)
    woven.weave(
        Aspect(f"{NAME}.whole", sequence=EACH, sample=sample),
        Aspect(f"{NAME}.Table.second", sample=sample),
    )
    whole(about(second, least))
    inner, outer = woven.told()
    whole(about(second, most))

    assert (inner.parent, inner.sequence) == (outer.step, outer.sequence)
    assert woven.told() == []
    assert AROUND.get() is None


def test_a_part_of_a_batch_goes_by_its_own_updates(
    woven: Woven, monkeypatch: pytest.MonkeyPatch
) -> None:
    least, second, *_, most = lots(range(50))
    monkeypatch.setattr(recorder, "fresh", lambda: TRACES[most])
    sample = between(least, second)
    woven.weave(
        Aspect(f"{NAME}.whole", sequence=EACH, sample=sample, purpose="whole"),
        Aspect(f"{NAME}.first", sequence=EACH, sample=sample, purpose="part"),
    )
    parts = iter([about(second, most), about(second, least)])
    real = woven_steps.first
    monkeypatch.setattr(woven_steps, "first", lambda _updates: real(next(parts)))
    for _ in range(2):
        whole(about(second, most, least))

    purposes = [each.node.node_purpose for each in woven.told()]
    assert purposes == ["whole", "part", "whole"]


def test_of_calls_about_whatever_one_in_so_many_is_told_for_itself(
    woven: Woven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are told for their updates only: with those it were the large batches above all."""
    sample, numbers = 0.25, iter(range(1_000_000))
    monkeypatch.setattr(recorder, "fresh", lambda: f"{next(numbers):032x}")
    woven.weave(Aspect(f"{NAME}.first", sequence=EACH, sample=sample))
    shares = []
    for size in (2, 50):
        for start in range(1_000):
            first(about(*range(start, start + size)))
        told = woven.told()
        assert all((lot_of(each.sequence) >= sample * LOTS) == each.for_links for each in told)
        assert all(each.links for each in told if each.for_links)
        shares.append((sum(not each.for_links for each in told), len(told)))

    (small, of_small), (large, of_large) = shares
    assert 200 < small < 300
    assert 200 < large < 300
    assert of_small < of_large


def test_a_profile_is_of_calls_that_are_told_for_themselves(
    woven: Woven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs most, and no trace shows it."""
    least, second, *_, most = lots(range(50))
    own = iter([TRACES[most], TRACES[least]])
    monkeypatch.setattr(recorder, "fresh", lambda: next(own))
    both = ("runtime", "profile")
    woven.weave(
        Aspect(f"{NAME}.first", sequence=EACH, sample=between(least, second), measures=both)
    )
    for _ in range(2):
        first(about(second, least))
    told = woven.outbox.take(10)

    assert [type(each) for each in told] == [
        RuntimePerformance,
        ResourceProfile,
        RuntimePerformance,
    ]


def test_contexts_are_made_while_anything_is_measured(tmp_path: Path) -> None:
    """As much as is sampled; of the woven call that is under way, if one is."""
    file = tmp_path / "aspects.toml"
    following = Following(file, tmp_path, "tests")
    try:
        following.look()
        assert MAKING.make is None
        file.write_text(f'[[aspect]]\npointcut = "{NAME}.first"\nmeasures = ["count"]\n')
        following.look()
        assert MAKING.make is None, "nobody needs one to count calls"
        file.write_text(f'[[aspect]]\npointcut = "{NAME}.first"\nsample = 0.5\n')
        following.look()
        made = [MAKING.of(None) for _ in range(200)]
        assert 0 < sum(map(bool, made)) < 200
        assert all(read(each) == each for each in made if each)
        file.unlink()
        following.look()
        assert MAKING.make is None
    finally:
        following.stop()


def test_a_context_is_made_of_the_woven_call_around(
    woven: Woven, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So the request is the first step of the trace that it begins."""
    file, made = tmp_path / "aspects.toml", []
    file.write_text(f'[[aspect]]\npointcut = "{NAME}.whole"\n')

    def second(_updates: list[Update]) -> int:
        made.append(MAKING.of(None))
        return 0

    monkeypatch.setattr(woven_steps.Table, "second", staticmethod(second))
    following = Following(file, tmp_path, "tests")
    try:
        following.look()
        whole([])
        following.look()
    finally:
        following.stop()
    (told,) = (tmp_path / "monitoring" / "measurements").glob("*.ndjson")
    step = msgspec.json.decode(told.read_bytes(), type=RuntimePerformance)

    assert (id_of(made[0]), step_of(made[0])) == (step.sequence, step.step)


def test_who_is_called_within_a_step_is_told_of_it(woven: Woven, monkeypatch, tmp_path) -> None:
    """Where that is measured, and of the same trace."""
    file, sent = tmp_path / "aspects.toml", []
    file.write_text(f'[[aspect]]\npointcut = "{NAME}.whole"\nsequence = "{EACH}"\n')
    call = lambda _updates: sent.append(MAKING.onward(context(0))) or 0  # noqa: E731
    monkeypatch.setattr(woven_steps.Table, "second", staticmethod(call))
    following = Following(file, tmp_path, "tests")
    try:
        following.look()
        for numbers in [(0,), (1,), (0, 1)]:
            whole(about(*numbers))
        following.look()
    finally:
        following.stop()
    whole(about(0))
    (told,) = (tmp_path / "monitoring" / "measurements").glob("*.ndjson")
    first_step, *_ = map(json.loads, told.read_text().splitlines())

    assert [step_of(each) for each in sent] == [first_step["step"], STEP, STEP, STEP]
    assert {id_of(each) for each in sent} == {TRACES[0]}


def kept(folder: Path, woven: Woven) -> Path:
    file = folder / "some.ndjson"
    file.write_bytes(msgspec.json.Encoder().encode_lines(woven.told()))
    return file


def test_a_trace_is_told_with_its_batches(woven: Woven, tmp_path: Path, capsys) -> None:
    woven.weave(
        Aspect(f"{NAME}.whole", sequence=EACH, purpose="request"),
        Aspect(f"{NAME}.first", sequence=EACH, purpose="inner"),
        Aspect(f"{NAME}.fails", purpose="other"),
    )
    whole(about(0))
    with pytest.raises(ZeroDivisionError):
        woven_steps.fails()
    first(about(1, 0, 2))
    first(about(1, 2))
    file = kept(tmp_path, woven)
    with file.open("ab") as more:
        more.write(b"no JSON of %b\n" % TRACES[0].encode())
    found = traced([file], TRACES[0])

    assert [(each.purpose, each.depth, each.others) for each in found] == [
        ("request", 0, 0),
        ("inner", 1, 0),
        ("inner", 0, 2),
    ]
    assert found[0].after == 0 <= found[1].after <= found[2].after
    assert cli.main(["monitoring", "trace", TRACES[0], str(file)]) == 0
    assert "together with 2 others" in capsys.readouterr().out
    assert cli.main(["monitoring", "trace", TRACES[0], str(file), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3
    assert cli.main(["monitoring", "trace", "f" * 32, str(file)]) == 1


def test_a_trace_is_told_with_what_its_batches_call(woven: Woven, tmp_path: Path) -> None:
    """As to store them: that says nothing of what it is about. Not what is about others."""
    woven.weave(
        Aspect(f"{NAME}.whole", sequence=EACH, purpose="batch"),
        Aspect(f"{NAME}.first", sequence=EACH, purpose="part"),
        Aspect(f"{NAME}.Table.second", purpose="store"),
    )
    whole(about(0, 1))
    whole(about(1, 2))
    found = traced([kept(tmp_path, woven)], TRACES[0])

    assert [(each.purpose, each.depth) for each in found] == [
        ("batch", 0),
        ("part", 1),
        ("store", 1),
    ]


@pytest.mark.parametrize("others", [(2, 3), (None, None), (None,), (2, None)])
@pytest.mark.parametrize("sample", [0.5, 1.0])
def test_a_trace_has_nothing_that_is_about_others_of_its_batch(
    woven: Woven,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    others: tuple[int | None, ...],
    sample: float,
) -> None:
    """Not where it is measured as the batch's own sequence is sampled; nor what that calls."""
    ordered = lots(range(50))
    sampled, unsampled = ordered[:2], dict(zip((2, 3), ordered[-2:], strict=True))
    monkeypatch.setattr(recorder, "fresh", lambda: TRACES[sampled[0]])
    woven.weave(
        Aspect(f"{NAME}.whole", sequence=EACH, sample=sample, purpose="batch"),
        Aspect(f"{NAME}.first", sequence=EACH, sample=sample, purpose="part"),
        Aspect(f"{NAME}.turns", sample=sample, purpose="frame"),
        Aspect(f"{NAME}.Table.second", sample=sample, purpose="store"),
    )
    real, part = woven_steps.first, about(*(each and unsampled[each] for each in others))
    monkeypatch.setattr(woven_steps, "first", lambda _updates: real(part))
    monkeypatch.setattr(woven_steps, "len", lambda _: woven_steps.turns(0), raising=False)
    whole(about(sampled[1], sampled[0], unsampled[2]))
    told = woven.told()
    file = tmp_path / "some.ndjson"
    file.write_bytes(msgspec.json.Encoder().encode_lines(told))

    assert {"part", "frame"} <= {each.node.node_purpose for each in told}
    purposes = [each.purpose for each in traced([file], TRACES[sampled[1]])]
    assert purposes == ["batch", "store"]


def test_a_trace_of_very_many_steps_is_not_read_into_memory(
    woven: Woven, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "MOST", 3)
    woven.weave(Aspect(f"{NAME}.first", sequence=EACH))
    for _ in range(3):
        first(about(0))
    assert len(traced([kept(tmp_path, woven)], TRACES[0])) == 3
    for _ in range(4):
        first(about(0))
    with pytest.raises(TooMany):
        traced([kept(tmp_path, woven)], TRACES[0])


@pytest.mark.parametrize("trace", ["", "x", TRACES[0][:-1], TRACES[0].replace("0", "G"), "A" * 32])
def test_what_is_no_trace_is_refused(trace: str, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["monitoring", "trace", trace])

    assert end.value.code == 2
    assert "32 hexadecimal digits" in capsys.readouterr().err


def test_of_long_files_the_last_lines_are_read(tmp_path: Path) -> None:
    """Whole ones, of each file an equal part; one that has gone meanwhile has none."""
    long, short = tmp_path / "long", tmp_path / "short"
    long.write_bytes(b"".join(b"%08d\n" % number for number in range(1_000)))
    short.write_bytes(b"only\n")

    found = list(tails([long, short, tmp_path / "gone"], 3 * 30))
    assert found == [b"%08d\n" % number for number in (997, 998, 999)] + [b"only\n"]
    assert list(tails([], 10)) == []
    whole_file = list(tails([short], 5))
    assert whole_file == [b"only\n"]
