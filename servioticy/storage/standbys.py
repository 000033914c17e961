"""A standby of Postgres: what the primary waits for, how it is fenced, how the other takes over.

Commits that are to be durable wait until the standby has written them down, too; those of the
pipeline wait for neither, as the log can repeat them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from servioticy.errors import Unavailable
from servioticy.storage.database import Database

NAME = "standby"
"""What it calls itself where it follows (`application_name`)."""
SECONDS = 30.0
PAUSE_SECONDS = 0.05

_FOLLOWED = """
SELECT 1 FROM pg_stat_replication
 WHERE application_name = %(name)s AND state = 'streaming'"""

_OTHERS_END = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""


def wait_for_it(primary: Database) -> bool:
    """Have durable commits wait for the standby from now on; False: none follows, nothing done.

    While it is away they wait for ever, and nobody is told that they are done.
    """
    if not primary.rows(_FOLLOWED, {"name": NAME}):
        return False
    primary.rows(f"ALTER SYSTEM SET synchronous_standby_names TO '{NAME}'")
    primary.rows("SELECT pg_reload_conf()")
    return True


def fence(old: Database) -> None:
    """Let nobody write there again, though it is alive: it only reads, for all who come, and
    whoever was there is sent away. It stays so when it is started again.

    Raises Unavailable where it is not reached: then its machine has to be ended otherwise, as
    whoever still reaches it would go on with it.
    """
    old.rows("ALTER SYSTEM SET default_transaction_read_only TO on")
    old.rows("SELECT pg_reload_conf()")
    _until(
        lambda: _shown(old, "default_transaction_read_only") == "on",
        "it does not go by its settings",
    )
    old.rows(_OTHERS_END)


def promote(new: Database) -> None:
    """Make the standby the primary. Raises Unavailable where it does not become one."""
    new.rows("SELECT pg_promote(true, 30)")
    _until(lambda: _shown(new, "in_hot_standby") == "off", "it does not become the primary")


def _shown(database: Database, name: str) -> str:
    database.close()  # who was there before may be told later than who comes
    return str(database.rows(f"SHOW {name}")[0][0])


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise Unavailable(otherwise)
        time.sleep(PAUSE_SECONDS)
