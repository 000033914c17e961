"""Settings: where they come from, and what is said when one is wrong."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from servioticy.errors import SettingsError
from servioticy.settings import Settings, load, to_environment


def test_defaults_are_safe() -> None:
    """Nothing but this machine gets in until somebody says so."""
    settings = load({})

    assert settings.host == "127.0.0.1"
    assert settings.dsn == ""


def test_every_setting_is_documented() -> None:
    assert all(len(each.metadata["doc"]) > 10 for each in fields(Settings))


def test_environment_wins_over_file_and_overrides_over_both(tmp_path: Path) -> None:
    file = tmp_path / "servioticy.toml"
    file.write_text('host = "::1"\napi_port = 1\nlive_port = 1\n')
    environment = {
        "SERVIOTICY_CONFIG": str(file),
        "SERVIOTICY_API_PORT": "2",
        "SERVIOTICY_LIVE_PORT": "2",
    }

    settings = load(environment, {"live_port": 3})

    assert (settings.host, settings.api_port, settings.live_port) == ("::1", 2, 3)


def test_values_get_the_type_of_their_setting() -> None:
    settings = load({"SERVIOTICY_API_UPDATE_THREADS": "8", "SERVIOTICY_READ_WAIT_SECONDS": "0.5"})

    assert (settings.api_update_threads, settings.read_wait_seconds) == (8, 0.5)


def test_settings_survive_the_way_through_a_child_s_environment() -> None:
    """`up` hands its settings to every program it starts."""
    settings = load({}, {"api_port": 9, "read_wait_seconds": 0.25, "topic_prefix": "test-"})

    assert load(to_environment(settings)) == settings


@pytest.mark.parametrize(
    ("environment", "overrides", "message"),
    [
        ({"SERVIOTICY_API_PORT": "many"}, {}, r"api_port = 'many' is not of type int"),
        ({}, {"api_prot": 1}, r"unknown setting 'api_prot'; known: .*api_port"),
        ({"SERVIOTICY_CONFIG": "/no/such/file"}, {}, r"cannot read .*/no/such/file"),
    ],
)
def test_a_wrong_setting_is_named(environment, overrides, message) -> None:
    with pytest.raises(SettingsError, match=message):
        load(environment, overrides)


def test_jars_are_shared_by_all_checkouts_of_a_user(monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")

    assert load({}).jars_path == Path("/somewhere/servioticy/jars")
    assert load({}, {"jars": "/else/where"}).jars_path == Path("/else/where")


def test_operations_page_lists_every_setting() -> None:
    """Operators read the page, not the code."""
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")

    for each in fields(Settings):
        default = each.default if each.default != "" else "(empty)"
        assert f"| `{each.name}` | {default} | {each.metadata['doc']} |" in page
