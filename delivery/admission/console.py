"""Pages of the console open sockets with their cookie, which other pages cannot.

A browser sends the cookie along whoever opens the socket, even from another port of the host. So
it counts only where `Origin`, which a page cannot choose, is the console's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from servioticy.domain.console import Place, secret_in
from servioticy.identity.console_sessions import PREFIX

NO_CONSOLE = Place("")


def of_session(place: Place, cookies: str, origins: Sequence[str]) -> str:
    """Return what stands for the session of a page of ours; empty: it is none."""
    if len(origins) != 1 or origins[0] not in place.origins:
        return ""
    secret = secret_in(cookies, place.cookie)
    return f"{PREFIX}{secret}" if secret else ""
