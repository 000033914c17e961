"""How many examples a property test tries."""

from __future__ import annotations

from hypothesis import settings

USUAL = "usual"
"""The profile of all other runs."""

QUICK = "quick"
"""The profile of `make unit`."""


def examples(usual: int) -> int:
    """`usual`, or the few of the quick profile."""
    if settings.get_current_profile_name() != QUICK:
        return usual
    return min(usual, int(settings.default.max_examples))
