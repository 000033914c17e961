"""Every command that README and docs print is run as printed, or named here with its reason."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from page_commands import Command, PageSession, blocks, commands
from running_platform import RunningPlatform

from servioticy.embedded import tcp_ports

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text("utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
TAKES_MINUTES = "installs, or takes minutes; .ci/run does it"
STANDS = "so the platform of the tests was started"
STANDS_BY_TLS = "the platform of these tests has no TLS; test_tls_of_up.py runs them"
NOT_RUN = {
    ("README.md", "make setup"): TAKES_MINUTES,
    ("README.md", "make demo"): TAKES_MINUTES,
    ("README.md", "make unit"): TAKES_MINUTES,
    ("README.md", "make test"): TAKES_MINUTES,
    ("README.md", "servioticy up"): STANDS,
    ("docs/command.md", "servioticy up"): STANDS,
    ("docs/how-to/back-up.md", "servioticy up"): "a second platform would take minutes to start",
    ("docs/how-to/upgrade.md", "git pull"): "changes the checkout that the tests are of",
    ("docs/how-to/upgrade.md", "make setup"): TAKES_MINUTES,
    ("docs/how-to/upgrade.md", "servioticy up"): STANDS,
    (
        "docs/how-to/several-machines.md",
        "servioticy",
    ): "needs other machines; supervisor starts all",
    ("docs/how-to/tls.md", "SERVIOTICY_TLS_"): STANDS_BY_TLS,
    ("docs/how-to/tls.md", "curl"): STANDS_BY_TLS,
    ("docs/operations.md", "curl"): "needs an issuer of persons; tests/integration/rest has one",
    (
        "docs/operators.md",
        "python3 -m operators.adapters",
    ): "goes on for ever; tests/integration/test_operator_kafka_loop.py runs it",
    ("docs/tutorial.md", "servioticy up"): STANDS,
}
"""Commands by their page and how they begin, and why no test runs them."""

LANGUAGES = {"sh", "json", "python", "js", "toml", "sql", "text", "yaml"}
"""What stands in a fence; only `sh` is for a shell."""
FIRST = {"docs/rest.md"}
"""Pages whose variables those of the folder of that name use."""


def not_run(page: str, command: Command) -> tuple[str, str] | None:
    """The entry of the list that a command is on."""
    fits = [key for key in NOT_RUN if key[0] == page and command.text.startswith(key[1])]
    return max(fits, default=None)


def groups() -> list[tuple[str, ...]]:
    """Pages with commands; those that go on where another ends, together with it."""
    found = []
    for name in PAGES:
        folder = f"{name.removesuffix('.md')}/"
        if any(name.startswith(f"{each.removesuffix('.md')}/") for each in FIRST):
            continue
        below = [each for each in PAGES if name in FIRST and each.startswith(folder)]
        if any(list(commands(PAGES[each])) for each in (name, *below)):
            found.append((name, *below))
    return found


@pytest.mark.parametrize("pages", groups(), ids=lambda pages: pages[0])
def test_the_commands_of_a_page_run_as_printed(
    pages: tuple[str, ...], platform: RunningPlatform, tmp_path: Path
) -> None:
    """Each ends with 0, and says what the page says that it does."""
    (tmp_path / "servioticy-data").symlink_to(platform.data)
    ports = {
        8080: platform.api_port,
        8081: platform.live_port,
        1883: platform.mqtt_port,
        9401: platform.metrics_ports["api"],
        9403: platform.metrics_ports["pipeline"],
        9999: tcp_ports.free(),
    }
    environment = {key: value for key, value in os.environ.items() if "SERVIOTICY" not in key}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    with PageSession(tmp_path, environment, ports) as session:
        for page in pages:
            for command in commands(PAGES[page]):
                if not_run(page, command) is None:
                    session.run(command, f"{page}:{command.line}")


def test_the_list_of_what_is_not_run_names_only_what_is_printed() -> None:
    named = {not_run(page, each) for page, text in PAGES.items() for each in commands(text)}

    assert set(NOT_RUN) - named == set()


@pytest.mark.parametrize("page", PAGES)
def test_what_is_for_a_shell_says_so(page: str) -> None:
    """A fence without a language, or with another one, would be run by nobody."""
    assert [each.line for each in blocks(PAGES[page]) if each.language not in LANGUAGES] == []
