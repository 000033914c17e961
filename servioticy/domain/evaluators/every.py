"""All evaluators that there are, by the names that composites call them by."""

from __future__ import annotations

from collections.abc import Mapping

from servioticy.domain.evaluators.evaluator import Evaluator, Evaluators
from servioticy.domain.evaluators.following import Following
from servioticy.domain.evaluators.operators import Operators
from servioticy.domain.evaluators.programs import Programs
from servioticy.domain.evaluators.silence import Silences
from servioticy.domain.evaluators.windows.operator import Windows
from servioticy.domain.model import JAVASCRIPT
from servioticy.domain.program_code import PROGRAMS
from servioticy.domain.windowed import FOLLOWING, SILENCE, WINDOWS


def every(javascript: Evaluator) -> Evaluators:
    """Return the evaluators, that of JavaScript among them."""
    return {JAVASCRIPT: javascript, **operators(javascript)}


def operators(javascript: Evaluator | None = None) -> Mapping[str, Operators]:
    """Return those of composites that an operator computes; `javascript` runs their code."""
    return {
        WINDOWS: Operators(Windows(), javascript),
        SILENCE: Operators(Silences()),
        FOLLOWING: Operators(Following()),
        PROGRAMS: Operators(Programs()),
    }
