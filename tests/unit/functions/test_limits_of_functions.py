"""Settings of functions that do not go together are refused before anything runs."""

from __future__ import annotations

import pytest

from functions.limits import limits
from servioticy.errors import SettingsError
from servioticy.settings import changed, load


def test_what_was_taken_is_hidden_for_longer_than_an_instance_lives() -> None:
    """By ten seconds at least: else two would work on one atom, both in good faith."""
    own = changed(load(), functions_lifetime_seconds=60.0)

    assert limits(changed(own, functions_visibility_seconds=70.0)).visibility_ms == 70_000
    with pytest.raises(SettingsError) as refused:
        limits(changed(own, functions_visibility_seconds=69.9))

    assert str(refused.value) == (
        "setting functions_visibility_seconds = 69.9: expected 70 at least, 10 more"
        " than functions_lifetime_seconds = 60"
    )
