"""`python -m api.trials.process FD`: tries changed documents for an API process, step by step."""

from __future__ import annotations

from api.stepping.answering import Answering
from api.trials.stored import Stored
from api.trials.trying import TrialsHere
from servioticy import bootstrap
from servioticy.apart.answering import serve
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.settings import load

MAX_WORKERS = 4
"""Tenants whose processes wait for their next trial."""


def main() -> None:
    """Try until nobody asks any more."""
    settings = load()
    history, last_updates, trials = bootstrap.tried(settings)
    evaluator = JavaScript(bootstrap.sandbox_pool(settings, max_workers=MAX_WORKERS))
    here = TrialsHere(Stored(history, last_updates, trials), evaluator)
    serve(Answering(here, "try again").answer)


if __name__ == "__main__":
    main()
