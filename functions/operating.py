"""Programs of tenants' as procedures have them: what it takes to begin them loads for a while."""

from __future__ import annotations

from functions.limits import LEAST_BEYOND_SECONDS
from functions.programs import Asking, Known, Running
from operators.building import Programs
from servioticy.settings import Settings
from servioticy.storage.database import Database
from servioticy.storage.programs import PostgresPrograms


def running(chosen: Settings, database: Database) -> Running:
    """Wire the step; nothing is begun before it is asked.

    What is not answered before others may see it has to be given back.
    """
    programs = Programs(chosen, PostgresPrograms(database), None)
    seconds = chosen.functions.visibility_seconds - LEAST_BEYOND_SECONDS
    return Running(Asking(programs), Known(programs.known), seconds)
