"""What `make setup` does after pip: `python -m servioticy.embedded.setup`."""

from __future__ import annotations

import sys

from servioticy.embedded import jars, java, javascript, stubs
from servioticy.embedded.downloads import Progress
from servioticy.errors import ServioticyError
from servioticy.settings import Settings, load


def prepare(settings: Settings) -> None:
    """Download what is missing and compile the stub classes; quick when nothing is missing."""
    if javascript.missing(settings):
        for package in javascript.download(settings, _shown("JavaScript")):
            _say(f"{package.name} is not in the registry; sandbox_engine = quickjs needs it")
    runtime = java.find(settings)
    if jars.missing(settings):
        for jar in jars.download(settings, _shown("jars")):
            _say(f"{jar.name} is not in the repository; our stub classes stand in for it")
    if jars.token_provider(settings) is None:
        stubs.compile_stubs(settings, runtime)
    _say(
        f"ready: Java {runtime.version} ({runtime.source}), "
        f"jars in {settings.embedded.jars_path}, "
        f"JavaScript in {javascript.folder(settings)}"
    )


def main() -> int:
    """Prepare the machine; if that cannot be done, say why in a line and return 1."""
    try:
        prepare(load())
    except ServioticyError as error:
        _say(str(error))
        return 1
    return 0


def _shown(what: str) -> Progress:
    """Return what tells a person how a download goes on."""

    def show(done: int, total: int, size: int) -> None:
        end = "\n" if done == total or not sys.stderr.isatty() else "\r"
        if sys.stderr.isatty() or done in (1, total):
            _say(f"downloading {what}: {done} of {total}, {size / 1e6:.1f} MB", end)

    return show


def _say(text: str, end: str = "\n") -> None:
    sys.stderr.write(f"servioticy: {text}{end}")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
