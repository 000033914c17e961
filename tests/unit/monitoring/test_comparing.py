"""Two runs compared: what is slower is found, and what is chance is not."""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import cli
from monitoring.analysis.comparing import Compared, Thresholds, compared
from monitoring.analysis.ranks import holm, mann_whitney
from monitoring.analysis.steps import Step
from monitoring.model import Node, RuntimePerformance

Samples = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("first", "second", "larger", "p"),
    [
        # The times of Mann and Whitney's own kind of example: all of one before all others.
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 1.0, 0.012186),
        ([19, 22, 16, 29, 24], [20, 11, 17, 12], 0.15, 0.111347),
        ([1, 1, 2], [1, 2, 2], 2 / 3, 0.619257),
        ([1], [1], 0.5, 1.0),
        ([7] * 30, [7] * 30, 0.5, 1.0),
    ],
)
def test_it_is_mann_and_whitneys_test(
    first: list[float], second: list[float], larger: float, p: float
) -> None:
    found = mann_whitney(first, second)

    assert math.isclose(found.larger, larger)
    assert math.isclose(found.p, p, abs_tol=1e-5)


@given(Samples, Samples)
def test_it_counts_pairs_and_does_not_mind_which_comes_first(
    first: list[float], second: list[float]
) -> None:
    """Against every pair, one by one."""
    found, back = mann_whitney(first, second), mann_whitney(second, first)
    pairs = [(b > a) + (a == b) / 2 for a, b in itertools.product(first, second)]

    assert math.isclose(found.larger, sum(pairs) / len(pairs))
    assert math.isclose(found.larger, 1 - back.larger, abs_tol=1e-12)
    assert math.isclose(found.p, back.p)
    assert 0 <= found.p <= 1


def test_where_nothing_differs_it_says_so_as_often_as_it_should() -> None:
    """Of a thousand pairs of alike samples about one in twenty is called different at 5 %."""
    made = random.Random(7)
    ps = [
        mann_whitney(
            [made.gauss(0, 1) for _ in range(25)], [made.gauss(0, 1) for _ in range(30)]
        ).p
        for _ in range(1000)
    ]

    assert 30 <= sum(each < 0.05 for each in ps) <= 70


def test_holm_corrects_each_against_the_rest() -> None:
    """Holm's own steps: the smallest by all, the next by one less, and none below one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


def a_run(
    runtime: int, *, seed: int = 1, times: int = 50, purpose: str = "step", node: str = "n"
) -> list[Step]:
    made = random.Random(seed)
    found = []
    for number in range(times):
        start = number * 1_000_000
        took = runtime + made.randrange(runtime // 5)
        found.append(Step(purpose, node, start, start + took, f"{purpose}/{number}"))
    return found


def verdicts(found: list[Compared]) -> dict[str, str]:
    return {each.what: each.verdict for each in found}


def test_what_takes_longer_is_slower() -> None:
    """A new process is another node, and the same step."""
    before = a_run(1000) + a_run(1000, purpose="same") + a_run(1000, purpose="quick")
    after = (
        a_run(1500, seed=2, node="other")
        + a_run(1000, seed=3, purpose="same")
        + a_run(500, seed=4, purpose="quick")
    )
    found = compared(before, after, Thresholds())

    assert verdicts(found) == {"step": "slower", "same": "alike", "quick": "faster"}
    worst = found[0]
    assert (worst.what, worst.times) == ("step", (50, 50))
    assert worst.larger == 1.0
    assert worst.p is not None
    assert worst.p < 1e-10
    assert worst.change == pytest.approx(0.5, abs=0.1)


def test_a_sure_difference_that_is_small_is_no_alarm() -> None:
    before, after = a_run(1000, times=2000), a_run(1030, seed=2, times=2000)

    assert verdicts(compared(before, after, Thresholds())) == {"step": "alike"}
    assert verdicts(compared(before, after, Thresholds(change=0.01))) == {"step": "slower"}
    strict = Thresholds(change=0.01, least_ns=500)
    assert verdicts(compared(before, after, strict)) == {"step": "alike"}


def test_of_few_nothing_is_said() -> None:
    before, after = a_run(1000, times=19), a_run(9000, seed=2)
    (found,) = compared(before, after, Thresholds())

    assert (found.verdict, found.p, found.larger) == ("too few", None, None)
    assert found.before is not None
    assert verdicts(compared(before, after, Thresholds(least=19))) == {"step": "slower"}


def test_what_only_one_has_is_told() -> None:
    found = compared(a_run(10, purpose="gone"), a_run(10, purpose="new"), Thresholds())

    assert verdicts(found) == {"gone": "only before", "new": "only after"}


def test_many_that_are_compared_raise_no_alarm_by_their_number() -> None:
    """Of a hundred alike steps some differ by chance: the correction is for that."""
    before = [s for n in range(100) for s in a_run(1000, seed=n, purpose=f"s{n}")]
    after = [s for n in range(100) for s in a_run(1000, seed=n + 500, purpose=f"s{n}")]
    found = compared(before, after, Thresholds(chance=0.05, change=0.0))

    assert {each.verdict for each in found} == {"alike"}
    assert sum(each.p is not None for each in found) == 100


def test_latencies_and_sequences_are_compared_too() -> None:
    def run(gap: int) -> list[Step]:
        return [
            step
            for n in range(30)
            for step in (
                Step("a", "n", n * 10_000, n * 10_000 + 100, str(n)),
                Step("b", "n", n * 10_000 + 100 + gap + n, n * 10_000 + 300 + gap, str(n)),
            )
        ]

    found = {each.kind: each for each in compared(run(100), run(1000), Thresholds())}

    assert found["latency"].what == "a to b"
    assert found["latency"].verdict == found["sequences"].verdict == "slower"


def written(folder: Path, steps: list[Step]) -> Path:
    folder.mkdir()
    measured = [
        RuntimePerformance(Node(each.node, each.purpose), "f", each.start, each.end, each.sequence)
        for each in steps
    ]
    (folder / "a.ndjson").write_bytes(msgspec.json.Encoder().encode_lines(measured))
    return folder


def ran(*words: Any) -> int:
    return cli.main(["monitoring", "compare", *map(str, words)])


def test_the_command_raises_the_alarm_by_its_exit_code(tmp_path: Path, capsys) -> None:
    before = written(tmp_path / "before", a_run(1_000_000))
    after = written(tmp_path / "after", a_run(2_000_000, seed=2))

    assert ran(before, before) == 0
    assert ran(before, after) == 1
    table = capsys.readouterr().out.splitlines()[-1]
    assert table.startswith("slower  step  50 / 50")
    assert ran(after, before / "a.ndjson") == 0
    assert ran(before, after, "--change", 500) == 0
    assert ran(before, after, "--least-ms", 50) == 0
    assert ran(before, after, "--least", 51) == 0
    capsys.readouterr()
    assert ran(before, after, "--json", "--chance", "0.05") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["regressions"] == 1
    assert told["compared"][0]["times"] == [50, 50]


def test_one_run_is_compared_with_itself_before_and_after_a_time(tmp_path: Path) -> None:
    """As when a script is another one from then on; a sequence that has begun is not torn."""
    quick = [Step("step", "n", n * 10**6, n * 10**6 + 100 + n, str(n)) for n in range(50)]
    slow = [
        Step("step", "n", 10**9 + n * 10**6, 10**9 + n * 10**6 + 900 + n, f"s{n}")
        for n in range(50)
    ]
    late = Step("last", "n", 10**9 + 5, 10**9 + 9, "0")
    run = written(tmp_path / "run", [*quick, *slow, late])

    assert ran(run, "--at", 1_000) == 1
    assert ran(run, "--at", 25) == 1
    assert ran(run, "--at", 1_025) == 1


@pytest.mark.parametrize("words", [["run"], ["run", "run", "--at", "5"], ["run", "--at", "0"]])
def test_where_nothing_can_be_compared_it_says_so(
    words: list[str], tmp_path: Path, capsys, monkeypatch
) -> None:
    """With another exit code than an alarm."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "run", a_run(1000))
    (tmp_path / "empty").mkdir()

    assert ran(*words) == 2
    assert ran("run", "empty") == ran("run", "nothing") == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    ["--chance=0", "--chance=2", "--change=-1", "--change=x", "--least=1", "--least-ms=nan"],
)
def test_thresholds_that_mean_nothing_are_refused(option: str) -> None:
    with pytest.raises(SystemExit) as end:
        ran("a", "b", option)

    assert end.value.code == 2
