"""How many examples each law tries: EXAMPLES in the environment, else these.

And time to load components: the machine that runs the tests may be busy with others.
"""

from __future__ import annotations

import math
import os

import pytest
from examples import examples
from hypothesis import HealthCheck, settings
from sandbox_pools import a_pool

from pipeline.evaluators.javascript import JavaScript
from pipeline.state import components

for name, usual in {"law": 500, "changes": 100}.items():
    settings.register_profile(
        name,
        max_examples=int(os.environ.get("EXAMPLES", examples(usual))),
        deadline=None,
        print_blob=True,
        # A whole graph and its history is a lot to draw; the sandbox is to outlive examples.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


@pytest.fixture(autouse=True, scope="session")
def _no_component_waits_until_it_is_loaded() -> None:
    """What is put off is not taken up by a test that does not expect it: see test_loading."""
    components.LOADING_SECONDS = math.inf


@pytest.fixture(scope="session")
def in_sandbox():
    """The evaluators of a platform."""
    # Nothing hangs here, and a busy machine is to break no law.
    pool = a_pool(budget_ms=30_000, engine=os.environ.get("ENGINE", "v8"))
    yield {"javascript": JavaScript(pool)}
    pool.close()


@pytest.fixture(scope="session", params=["functions", "javascript"])
def evaluators(request):
    """Makes the evaluators of the composites of some objects of the serial law."""
    from test_serial_law import functions

    if request.param == "functions":
        return lambda objects: {"javascript": functions(objects)}
    in_sandbox = request.getfixturevalue("in_sandbox")
    return lambda _objects: in_sandbox
