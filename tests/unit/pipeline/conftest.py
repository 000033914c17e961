"""How many examples each property test tries: EXAMPLES in the environment, 500 where not set."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "law",
    max_examples=int(os.environ.get("EXAMPLES", "500")),
    deadline=None,
    print_blob=True,
    # A whole graph and its history is a lot to draw; the sandbox is meant to outlive examples.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
