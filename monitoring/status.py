"""`monitoring status`: what is woven in how many processes, and why not where not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from monitoring.configuration import Configuration, NotUnderstood, file_of, read
from monitoring.state import ProcessState, states
from servioticy.errors import SettingsError
from servioticy.settings import Settings


class PointcutState(msgspec.Struct, frozen=True):
    """One pointcut, over all processes of this machine."""

    pointcut: str
    woven: int
    """processes in which something of it is woven"""
    of: int
    """processes that have anything that it names"""
    functions: int
    """most in one process"""
    not_woven: dict[str, str]
    """functions and why, as the first process says it"""
    in_java: bool = False
    """woven only where a Java starts"""


class Status(msgspec.Struct, frozen=True):
    """All that is told."""

    file: str
    wrong: str
    """why nothing is woven anew, else empty"""
    pointcuts: list[PointcutState]
    processes: list[ProcessState]

    @property
    def is_well(self) -> bool:
        """Whether everything that is asked for is woven wherever it could be."""
        wrong = self.wrong or any(each.wrong for each in self.processes)
        return not wrong and all(
            each.of and each.woven == each.of and not each.not_woven for each in self.pointcuts
        )


def of(settings: Settings) -> Status:
    """Return what is woven. Raises SettingsError where there is no data folder."""
    if not settings.data_path.is_dir():
        raise SettingsError(f"there is no data folder {settings.data_path}: name it with --data")
    file = file_of(settings)
    wrong, chosen = "", Configuration()
    if file.exists():
        try:
            chosen = read(file)
        except NotUnderstood as error:
            wrong = str(error)
    processes = list(states(settings.data_path))
    names = dict.fromkeys(each.pointcut for each in chosen.aspect)
    java = {each.pointcut for each in chosen.aspect if each.language == "java"}
    # What is woven still, though the file does not say so any more, is told, too.
    for process in processes:
        names.update(dict.fromkeys(each.pointcut for each in process.reports))
    pointcuts = [_pointcut(each, processes, in_java=each in java) for each in names]
    return Status(str(file), wrong, pointcuts, processes)


def _pointcut(name: str, processes: Iterable[ProcessState], *, in_java: bool) -> PointcutState:
    reports = [
        each
        for process in processes
        for each in process.reports
        if each.pointcut == name and each.has_place
    ]
    refused: dict[str, str] = {}
    for each in reports:
        refused = {**each.not_woven, **refused}
    woven = [each.woven for each in reports if each.woven]
    functions = max(woven, default=0)
    return PointcutState(name, len(woven), len(reports), functions, refused, in_java)


def lines(status: Status) -> list[str]:
    """Return it as it is shown to people."""
    file = Path(status.file)
    if status.wrong:
        return [f"{file} is not understood: {status.wrong}"]
    if not file.exists() and not status.pointcuts:
        return [f"nothing is woven: there is no {file}"]
    told = [f"aspects of {file}"]
    for each in status.pointcuts:
        told.append(
            f"  {each.pointcut}: woven in {each.woven} of {each.of} processes"
            + (f", {each.functions} functions" if each.functions > 1 else "")
        )
        if not each.of:
            told.append(
                "    no Java that runs here was begun with it, or has loaded it"
                if each.in_java
                else "    no process that runs here has it"
            )
        told += [f"    not {name}: {why}" for name, why in each.not_woven.items()]
    told.append(f"processes: {len(status.processes)}")
    for process in status.processes:
        told.append(
            f"  {process.program} {process.pid}: {process.published:,} measurements published, "
            f"{process.dropped:,} dropped"
        )
        told += [f"    the file is not understood: {process.wrong}"] if process.wrong else []
    return told
