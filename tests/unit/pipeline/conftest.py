"""How many examples the property tests try: EXAMPLES in the environment, 1000 where not set."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "law",
    max_examples=int(os.environ.get("EXAMPLES", "1000")),
    deadline=None,
    # A whole graph and its history is a lot to draw, and a million examples take their time.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("law")
