"""How many examples a property test tries."""

from __future__ import annotations

import pytest
from hypothesis import settings

USUAL = "usual"
"""The profile of a run by hand: all of them."""

CI = "ci"
"""The profile of `make test`, which runs all laws one after the other: a part of them."""

QUICK = "quick"
"""The profile of `make unit`."""

PART, ENOUGH = 4, 15
"""Of the usual examples CI tries one in so many, and of no law fewer than so many: what random
graphs get wrong they mostly get wrong soon, and whoever changes a law runs `make property`."""


def examples(usual: int) -> int:
    """`usual`; or the part of CI; or the few of the quick profile."""
    profile = settings.get_current_profile_name()
    if profile == QUICK:
        return min(usual, int(settings.default.max_examples))
    return min(usual, max(ENOUGH, usual // PART)) if profile == CI else usual


def by_hand(why: str) -> pytest.MarkDecorator:
    """Marks a test that takes too long for `make test`; `make test PROFILE=usual` runs it."""
    profile = settings.get_current_profile_name()
    return pytest.mark.skipif(profile == CI, reason=f"not in CI: {why}")
