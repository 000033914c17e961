"""`servioticy backup` and `servioticy restore`: what they do and say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from command import running, shown
from command.remote import progress
from servioticy.backup.about import About
from servioticy.backup.archive import Archive
from servioticy.backup.restoring import restore as restored
from servioticy.backup.taking import back_up
from servioticy.embedded.folder import read_run
from servioticy.errors import SettingsError
from servioticy.settings import Settings

PAGE = "docs/how-to/back-up.md"
NOT_IN_IT = (
    "not in it: what is accepted from now on; settings, certificates and passwords of programs; "
    f"dead letters ({PAGE})"
)
NOT_AS_IT_WAS = (
    "all is as it was then: tokens, grants and members that were revoked since are good again, "
    "and what was delivered since comes once more",
    "clients that kept the id of an event begin without it: ids are places in a log that is gone "
    f"({PAGE})",
)


def run_backup(settings: Settings, file: Path) -> int:
    """Write a back-up of the platform, whether it runs or not."""
    if file.exists():  # before anything is started
        raise SettingsError(f"{file} is there already: name another file")
    with running.stores(settings) as found, progress.shown("back-up", None) as advanced:
        about = back_up(file, found, advanced)
    told = [f"{file}: {file.stat().st_size / 1e6:.1f} MB"]
    shown.say([*told, *(f"  {line}" for line in _in_it(about)), NOT_IN_IT])
    return 0


def run_restore(settings: Settings, file: Path) -> int:
    """Restore a back-up into the empty platform that the settings name."""
    if not settings.store.dsn and read_run(settings.data_path) is not None:
        raise SettingsError(
            f"a platform runs on {settings.data_path}: stop it, or name another folder with --data"
        )
    with Archive(file) as archive, progress.shown("restore", 2 * archive.size) as advanced:
        archive.check(advanced)  # before anything is started or made
        with running.stores(settings) as found:
            about = restored(archive, found, advanced)
    told = [f"  {line}" for line in _in_it(about)]
    shown.say([f"restored as of {about.made_at}", *told, *NOT_AS_IT_WAS])
    return 0


def _in_it(about: About) -> Iterator[str]:
    """Tell what somebody wants to know of a back-up."""
    counts = {each.name: each.count for each in about.parts}

    def records(topic: str) -> int:
        return sum(count for name, count in counts.items() if name.startswith(f"log/{topic}-"))

    yield f"tenants                    {counts.get('tables/tenants', 0):>14,}"
    yield f"Service Objects            {counts.get('tables/service_objects', 0):>14,}"
    yield f"updates                    {counts.get('tables/stored_updates', 0):>14,}"
    yield f"accepted, not yet stored   {records('updates'):>14,}"
    yield f"waiting for subscriptions  {records('emitted'):>14,}"
