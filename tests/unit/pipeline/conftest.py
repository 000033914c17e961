"""How many examples each law tries: EXAMPLES in the environment, else these."""

from __future__ import annotations

import os

from examples import examples
from hypothesis import HealthCheck, settings

for name, usual in {"law": 500, "changes": 100}.items():
    settings.register_profile(
        name,
        max_examples=int(os.environ.get("EXAMPLES", examples(usual))),
        deadline=None,
        print_blob=True,
        # A whole graph and its history is a lot to draw; the sandbox is to outlive examples.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
