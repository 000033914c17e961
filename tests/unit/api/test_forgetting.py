"""What is old enough goes, some of it at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from api.background.forgetting import PAUSE_SECONDS, Forgetting


@dataclass
class Rows:
    """Statements that remove rows; of each as many as there are."""

    left: dict[str, int]
    asked: list[dict[str, object]] = field(default_factory=list)

    def rows(self, name: str, /, **values: object) -> list[tuple[int]]:
        self.asked.append(values)
        most = values["most"]
        assert isinstance(most, int)
        gone = min(most, self.left[name])
        self.left[name] -= gone
        return [(0,)] * gone

    def row(self, name: str, /, **values: object) -> tuple[int] | None:
        raise NotImplementedError

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()


def test_it_goes_on_until_few_are_left_and_looks_again_later() -> None:
    """As long as one of the statements removes all that it may, there may be more."""
    rows, seconds = Rows({"one": 5, "other": 1}), [0.0]
    old = Forgetting(rows, ("one", "other"), lambda: {"days": 7}, 2, lambda: seconds[0])

    assert [old.turn(), old.turn(), old.turn()] == [True, True, False]
    assert rows.left == {"one": 0, "other": 0}
    assert rows.asked[0] == {"days": 7, "most": 2}
    rows.left["other"] = 1
    seconds[0] = PAUSE_SECONDS - 1
    assert not old.turn()
    assert rows.left["other"] == 1
    seconds[0] = PAUSE_SECONDS
    assert not old.turn()
    assert rows.left["other"] == 0
