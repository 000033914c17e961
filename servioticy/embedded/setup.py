"""What `make setup` does after pip: `python -m servioticy.embedded.setup`."""

from __future__ import annotations

import sys

from servioticy.embedded import jars, java, stubs
from servioticy.errors import ServioticyError
from servioticy.settings import Settings, load


def prepare(settings: Settings) -> None:
    """Download the jars and compile the stub classes; quick when there is nothing to do."""
    runtime = java.find(settings)
    if jars.missing(settings):
        for jar in jars.download(settings, _show):
            _say(f"{jar.name} is not in the repository; our stub classes stand in for it")
    if jars.token_provider(settings) is None:
        stubs.compile_stubs(settings, runtime)
    _say(
        f"ready: Java {runtime.version} ({runtime.source}), jars in {settings.embedded.jars_path}"
    )


def main() -> int:
    """Prepare; say what is wrong in a line if it cannot be done."""
    try:
        prepare(load())
    except ServioticyError as error:
        _say(str(error))
        return 1
    return 0


def _show(done: int, total: int, size: int) -> None:
    end = "\n" if done == total or not sys.stderr.isatty() else "\r"
    if sys.stderr.isatty() or done in (1, total):
        _say(f"downloading jars: {done} of {total}, {size / 1e6:.1f} MB", end)


def _say(text: str, end: str = "\n") -> None:
    sys.stderr.write(f"servioticy: {text}{end}")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
