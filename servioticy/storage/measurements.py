"""Measurements of woven steps: the last so many rows, whoever writes them."""

from __future__ import annotations

from collections.abc import Sequence

from servioticy.errors import SettingsError
from servioticy.storage.arrays import columns
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.roles import Role

SECONDS = 10.0
FORGOTTEN_AT_ONCE = 5_000
"""More than come at once: a bound that is lowered is reached soon."""
MOST = 1_000_000
"""Rows that are kept, if the file of aspects says nothing."""

_ROLES = {
    "api": Role.API,
    "pipeline": Role.PIPELINE,
    "delivery": Role.DELIVERY,
    "broker": Role.DELIVERY,
}


def role_of(program: str) -> Role:
    """Return as whom a program writes. Raises SettingsError."""
    found = next((role for name, role in _ROLES.items() if program.startswith(name)), None)
    if found is None:
        raise SettingsError(f"the program {program} has no role in Postgres")
    return found


class MeasurementRows:
    """Belongs to one thread, and closes the database that it is given."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("measurements")

    def add(self, rows: Sequence[tuple[str, str, str, str]], most: int) -> None:
        """Add rows of type, purpose, sequence and JSON, and let those go that are beyond `most`.

        Raises Unavailable.
        """
        kinds, purposes, sequences, documents = columns(rows, 4)
        self._database.rows(
            self._sql["add"],
            {
                "kinds": list(kinds),
                "purposes": list(purposes),
                "sequences": list(sequences),
                "documents": list(documents),
            },
        )
        self._database.rows(self._sql["forget"], {"most": most, "at_once": FORGOTTEN_AT_ONCE})

    def close(self) -> None:
        """Let the connection go."""
        self._database.close()
