"""How many examples each law tries: these, by Hypothesis, or EXAMPLES by plain chance.

And time to load components: the machine that runs the tests may be busy with others.
"""

from __future__ import annotations

import math
import os
import sys

import pytest
from examples import examples
from hypothesis import HealthCheck, settings
from plain_chance import plainly
from sandbox_pools import a_pool

from pipeline.state import components
from servioticy.domain.evaluators.javascript import JavaScript

pytest.register_assert_rewrite("serial_order", "changing_law", "crossing_oracle")  # what differs


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Once it is known which profile is asked for."""
    for name, usual in {"law": 200, "changes": 60, "trials": 15}.items():
        settings.register_profile(
            name,
            max_examples=examples(usual),
            deadline=None,
            # The same commit has the same examples: whoever looks for others runs `make property`.
            derandomize=True,
            print_blob=True,
            # A whole graph and its history is a lot to draw; the sandbox is to outlive examples.
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        )


EXAMPLES, FIRST = int(os.environ.get("EXAMPLES", "0")), int(os.environ.get("FIRST", "0"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Try a law by plain chance where so many examples are asked for."""
    if not EXAMPLES or not hasattr(pyfuncitem.obj, "hypothesis"):
        return None

    def tell(number: int) -> None:
        if number % 1000 == 0 and (capture := sys.__stderr__) is not None:
            capture.write(f"{pyfuncitem.nodeid}: {number - FIRST} of {EXAMPLES}\n")

    fixtures = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    plainly(pyfuncitem.obj, FIRST, EXAMPLES, tell)(**fixtures)
    return True


@pytest.fixture(autouse=True, scope="session")
def _no_component_waits_until_it_is_loaded() -> None:
    """What is put off is not taken up by a test that does not expect it: see test_loading."""
    components.LOADING_SECONDS = components.CONTESTED_SECONDS = math.inf


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
    from serial_order import functions

    if request.param == "functions":
        return lambda objects: {"javascript": functions(objects)}
    in_sandbox = request.getfixturevalue("in_sandbox")
    return lambda _objects: in_sandbox
