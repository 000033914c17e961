"""The REST program: `python -m api`, until SIGTERM or SIGINT."""

from __future__ import annotations

import sys
from functools import partial

from api import server, workers
from monitoring import following
from servioticy import bootstrap, logs, settings
from servioticy.errors import ServioticyError
from servioticy.metrics import Registry, join, shared
from servioticy.serving_metrics import serve
from servioticy.settings import Settings


def main() -> int:
    """Serve; an expected failure is one line and exit code 1."""
    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        _serve(chosen)
    except ServioticyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _serve(chosen: Settings) -> None:
    listener = workers.inherited()
    if listener is not None:
        registry = Registry(with_process=False)
        join(registry)
    else:
        listener, registry = server.listen(chosen), Registry()
        serve(registry, chosen, "api")
        if chosen.api.workers > 1:
            shown = bootstrap.certificate(chosen)  # what is wrong with it is told once, and here
            if shown is not None:
                shown.stop()  # each of them looks after its own
            with shared(registry):
                workers.Workers(listener, chosen.api.workers).run()
            return
    from api.wsgi import build  # not needed, and slow to import, where others do the work

    following.begin(chosen, "api", registry)
    server.run(chosen, listener, partial(build, chosen), registry)


if __name__ == "__main__":
    sys.exit(main())
