"""Users of links whose platform has died: only of one's own database is known who lives."""

from __future__ import annotations

import pytest

from operators.queues import link
from operators.queues.link import PREFIX, prefix
from operators.queues.resp import Address


class Server:
    """Users of all databases, and which links of one say that they still are."""

    def __init__(self, *users: str, here: tuple[str, ...] = ()) -> None:
        self.users = [each.encode() for each in users]
        self.here = {f"{each}:here".encode() for each in here}

    def __call__(self, _place: Address) -> Server:
        return self

    def call(self, *words: object) -> object:
        if words[:2] == ("ACL", "DELUSER"):
            self.users = [each for each in self.users if each not in words]
        return list(self.users)

    def calls(self, commands: list[tuple[object, ...]]) -> list[int]:
        return [int(key in self.here) for _, key in commands]

    def close(self) -> None:
        """Nothing is open."""


def test_another_databases_users_are_not_ours_to_take_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though their numbers begin alike."""
    one, eleven = Address(database=1), Address(database=11)
    users = [f"{prefix(one)}dead", f"{prefix(one)}alive", f"{prefix(eleven)}a", "default"]
    server = Server(*users, here=(users[1],))
    monkeypatch.setattr(link, "Connection", server)

    link._sweep(one)

    assert server.users == [each.encode() for each in users[1:]]
    assert all(each.startswith(PREFIX) for each in users[:3])
