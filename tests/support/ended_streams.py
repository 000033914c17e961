"""How a socket ends whose client may stay no longer."""

from __future__ import annotations

import pytest
from support.delivery_stores import WAIT_SECONDS
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

REASON = "the token is not good for this any more"


def end_of(socket: ClientConnection) -> tuple[int, str]:
    with pytest.raises(ConnectionClosed) as error:
        while True:
            socket.recv(WAIT_SECONDS)
    assert error.value.rcvd is not None
    return error.value.rcvd.code, error.value.rcvd.reason
