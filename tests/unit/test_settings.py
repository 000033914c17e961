"""Settings: where they come from, and what is said when one is wrong."""

from __future__ import annotations

import json
import math
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from servioticy.errors import SettingsError
from servioticy.settings import Settings, changed, load, to_environment
from servioticy.settings.declared import DECLARED, Declared, declared
from servioticy.settings.loading import by_name

SPARK_CONF = "a table of texts named spark.*; in the environment a JSON object"
PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def written(folder: Path, text: str) -> dict[str, str]:
    """An environment that names a settings file with this text."""
    file = folder / "servioticy.toml"
    file.write_text(text)
    return {"SERVIOTICY_CONFIG": str(file)}


def test_defaults_are_safe() -> None:
    """Nothing but this machine gets in until somebody says so."""
    settings = load({})

    assert settings.host == "127.0.0.1"
    assert settings.store.dsn == ""


def test_every_default_is_a_value_that_its_setting_takes() -> None:
    assert changed(Settings(), **by_name(Settings())) == Settings()


def test_no_two_settings_have_one_name() -> None:
    times = Counter(each.name for each in declared(Settings))

    assert [name for name, count in times.items() if count > 1] == []


def test_environment_wins_over_file_and_overrides_over_both(tmp_path: Path) -> None:
    environment = {
        **written(tmp_path, 'host = "::1"\n[api]\nport = 1\n[delivery]\nport = 1\n'),
        "SERVIOTICY_API_PORT": "2",
        "SERVIOTICY_LIVE_PORT": "2",
    }

    settings = load(environment, {"live_port": 3})

    assert (settings.host, settings.api.port, settings.delivery.port) == ("::1", 2, 3)


def test_values_get_the_type_of_their_setting() -> None:
    settings = load({"SERVIOTICY_API_UPDATE_THREADS": "8", "SERVIOTICY_READ_WAIT_SECONDS": "0"})

    assert (settings.api.update_threads, settings.requests.read_wait_seconds) == (8, 0.0)
    assert type(settings.requests.read_wait_seconds) is float


def test_settings_survive_the_way_through_a_child_s_environment() -> None:
    """`up` hands its settings to every program it starts."""
    settings = load({}, {"api_port": 9, "read_wait_seconds": 0.25, "topic_prefix": "test-"})

    assert load(to_environment(settings)) == settings


def test_settings_survive_the_way_to_a_spark_worker() -> None:
    """It keeps what it has made of them by them, too."""
    settings = changed(Settings(), dsn="postgresql://somewhere", api_port=9)
    arrived = pickle.loads(pickle.dumps(settings))

    assert arrived == settings
    assert hash(arrived) == hash(settings)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("api_port", "many", "a whole number from 1 to 65535"),
        ("api_port", "-3", "a whole number from 1 to 65535"),
        ("api_port", "65536", "a whole number from 1 to 65535"),
        ("api_port", "80.5", "a whole number from 1 to 65535"),
        ("api_port", "", "a whole number from 1 to 65535"),
        ("partitions", "0", "a whole number from 1 to 10000"),
        ("api_share", "0", "a number above 0, at most 1"),
        ("api_share", "nan", "a number above 0, at most 1"),
        ("read_wait_seconds", "-1", "a number from 0 to 86400"),
        ("read_wait_seconds", "inf", "a number from 0 to 86400"),
        ("sandbox_engine", "v9", "one of v8, quickjs"),
        ("broker_flush", "sometimes", "one of os, always"),
        ("log_level", "LOUD", "one of DEBUG, INFO, WARNING, ERROR"),
        ("pipeline_heap", "lots", "a size such as 512m"),
        ("topic_prefix", "a/b", "at most 100 of A-Z a-z 0-9 . _ -"),
        ("topic_prefix", "a" * 101, "at most 100 of A-Z a-z 0-9 . _ -"),
        ("public_url", "ftp://here", "empty, or a URL that begins with http"),
        ("data", "", "text that is not empty"),
        ("kafka_ssl_check_host", "maybe", "true or false"),
        ("spark_master", "local [2]", "text without spaces"),
        ("spark_conf", "spark.ui.enabled=true", SPARK_CONF),
        ("spark_conf", '{"spark.cores.max": 2}', SPARK_CONF),
        ("spark_conf", '{"sparc.cores.max": "2"}', SPARK_CONF),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(name, value, expected) -> None:
    message = f"setting {name} = {value!r}: expected {expected}"

    with pytest.raises(SettingsError, match=f"^{re.escape(message)}$"):
        load({f"SERVIOTICY_{name.upper()}": value})


@pytest.mark.parametrize("name", DECLARED)
def test_every_setting_has_bounds(name: str) -> None:
    """Numbers have two ends: what is beyond them is refused, and so is what is no number."""
    each = DECLARED[name]
    kind = msgspec.inspect.type_info(each.type)
    wrong: list[Any] = [object()]
    if isinstance(kind, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        least = kind.gt if kind.ge is None else kind.ge
        assert least is not None
        assert kind.le is not None
        wrong += [math.nan, kind.le + 1, least - 1]

    for value in wrong:
        with pytest.raises(SettingsError, match=f"^setting {name} = .*: expected .*"):
            changed(Settings(), **{name: value})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense = 1", "unknown setting or table 'nonsense'; known: .*host"),
        ("[nonsense]\nx = 1", "unknown setting or table 'nonsense'"),
        ("[api]\nprot = 1", r"unknown setting 'prot' in \[api\]; known: .*port"),
        ("api_port = 1", r"setting api_port stands in the table \[api\], as port"),
        ("[api]\nhost = '::1'", "setting host stands before all tables, as host"),
        ("api = 1", r"api is a table: its settings stand below \[api\]"),
        ("[api]\nport = 'many'", "setting api_port = 'many': expected a whole number"),
        ("[api]\nport = true", "setting api_port = True: expected a whole number"),
        ("data = 5", "setting data = 5: expected text"),
        ("[api", "cannot read the settings file .*servioticy.toml"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(written(tmp_path, text))


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    environment = written(tmp_path, "")
    Path(environment["SERVIOTICY_CONFIG"]).write_bytes(b"\xff\xfe")

    with pytest.raises(SettingsError, match="cannot read the settings file"):
        load(environment)


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(SettingsError, match=r"cannot read .*/no/such/file"):
        load({"SERVIOTICY_CONFIG": "/no/such/file"})


def test_a_setting_that_is_none_is_told() -> None:
    with pytest.raises(SettingsError, match=r"unknown setting 'api_prot'; known: .*api_port"):
        load({}, {"api_prot": 1})


def test_secrets_are_not_shown() -> None:
    """Neither where settings are logged nor where one is wrong."""
    assert "hunter2" not in repr(changed(Settings(), dsn="postgresql://me:hunter2@db/x"))

    with pytest.raises(SettingsError, match=r"setting dsn = \(hidden\): expected text") as told:
        changed(Settings(), dsn=["hunter2"])
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


def test_jars_are_shared_by_all_checkouts_of_a_user(monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")

    assert load({}).embedded.jars_path == Path("/somewhere/servioticy/jars")
    assert load({}, {"jars": "/else/where"}).embedded.jars_path == Path("/else/where")


def test_spark_s_configuration_is_a_table(tmp_path: Path) -> None:
    wanted = {"spark.executor.memory": "2g"}
    text = '[spark.conf]\n"spark.executor.memory" = "2g"\n'

    assert load(written(tmp_path, text)).spark.conf == wanted
    assert load({"SERVIOTICY_SPARK_CONF": json.dumps(wanted)}).spark.conf == wanted


def row(each: Declared) -> str:
    """The line of the page that a setting has."""
    place = f"[{each.section}] {each.key}" if each.section else each.key
    default = {"": "(empty)", "{}": "(empty)", "True": "true"}.get(str(each.default), each.default)
    return f"| `{each.name}` | `{place}` | {each.expected} | {default} | {each.doc} |"


def test_operations_page_has_the_table_of_settings() -> None:
    """Operators read the page, not the code."""
    head = ["| setting | in the file | values | default | what it is |"]
    table = "\n".join([*head, "| --- | --- | --- | --- | --- |", *map(row, DECLARED.values())])

    assert table in PAGE.read_text("utf-8"), f"docs/operations.md needs this table:\n{table}"


def test_what_is_of_a_machine_says_so() -> None:
    """A worker of Spark has its own of these: pipeline/spark/here.py."""
    words = re.compile(r"(an? )?(PEM file|TOML file|archive|folder\b|socket of|cgroup)")
    described = {name for name, each in DECLARED.items() if words.match(each.doc)}

    assert described == {name for name, each in DECLARED.items() if each.place}
