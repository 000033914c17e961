"""How many connections are let in before others have their turn in the loop, and how many wait."""

from __future__ import annotations

import socket
from collections.abc import Iterable

ACCEPTED_AT_ONCE = 16
"""What asyncio's servers call their backlog: so many are let in before anything else is done."""
WAITING_TO_BE_ACCEPTED = 4_096
"""Those wait in Linux, as far as it is allowed to (`net.core.somaxconn`)."""


def let_wait(listeners: Iterable[socket.socket]) -> None:
    """Let more wait than are let in at once: to asyncio the two are one number.

    The system takes the later word.
    """
    for each in listeners:
        with socket.fromfd(each.fileno(), each.family, each.type) as listener:
            listener.listen(WAITING_TO_BE_ACCEPTED)
