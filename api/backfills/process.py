"""`python -m api.backfills.process FD`: computes backfills for an API process, step by step."""

from __future__ import annotations

from api.backfills.filling import Filling
from api.stepping.answering import Answering
from servioticy import bootstrap
from servioticy.apart.answering import serve
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.settings import load

MAX_WORKERS = 2
"""Tenants whose processes wait for their next step."""
NICE = 15
"""Nobody waits for it: whatever else there is to do comes first."""


def main() -> None:
    """Fill until nobody asks any more."""
    settings = load()
    sandbox = bootstrap.sandbox_pool(settings, max_workers=MAX_WORKERS, nice=NICE)
    evaluator = JavaScript(sandbox)
    filling = Filling(bootstrap.filled(settings), evaluator)
    serve(Answering(filling, "it begins anew").answer, NICE)


if __name__ == "__main__":
    main()
