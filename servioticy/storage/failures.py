"""What becomes of errors of Postgres: what to do about them, and no more told than that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import psycopg2.errors

from servioticy.errors import Rejected, Unavailable

TOO_MUCH = "54"
"""Class of errors that no waiting heals: a program limit is exceeded."""

LOST = (
    psycopg2.OperationalError,
    psycopg2.InterfaceError,
    psycopg2.errors.ReadOnlySqlTransaction,
)
"""What psycopg2 raises when the server is gone, starting, or shutting down; or only reads, as one
does that is fenced because another takes its place."""


@contextmanager
def answering() -> Iterator[None]:
    """Let errors be Unavailable, or Rejected, where that is what they mean."""
    try:
        with _saying_less():
            yield
    except psycopg2.errors.LockNotAvailable as error:
        raise Unavailable("others are changing what this changes; try again later") from error
    except psycopg2.errors.QueryCanceled as error:
        raise Unavailable("Postgres takes too long for this; ask for less, or later") from error
    except LOST as error:
        if (error.pgcode or "").startswith(TOO_MUCH):
            raise Rejected(f"Postgres cannot take this: {str(error).strip()}") from error
        raise Unavailable(f"Postgres does not answer: {str(error).strip()}") from error


@contextmanager
def _saying_less() -> Iterator[None]:
    """Let an error of Postgres say its first sentence only: what follows has parts of rows.

    Errors end in logs, and rows have secrets. Which kind it is, its class and `diag` tell.
    """
    try:
        yield
    except psycopg2.Error as error:
        if error.diag.message_primary is not None:
            error.args = (error.diag.message_primary,)
        raise
