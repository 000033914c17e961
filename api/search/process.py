"""`python -m api.search.process FD`: searches for an API process, step by step."""

from __future__ import annotations

import resource

from api.search.searching import SearchesHere
from api.stepping.answering import Answering
from servioticy import bootstrap
from servioticy.apart.answering import serve
from servioticy.settings import load

MEMORY_BYTES = 1024 * 1024 * 1024
"""Of data; what is remembered is a twelfth of it."""


def main() -> None:
    """Search until nobody asks any more."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    history, stored = bootstrap.searched(load())
    serve(Answering(SearchesHere(history, stored), "search again").answer)


if __name__ == "__main__":
    main()
