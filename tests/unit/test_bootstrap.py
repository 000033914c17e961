"""What is built from the settings is built as they say, and in one place."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from api.backfills import process
from sandbox import SandboxOptions
from sandbox.yielding import NICE
from servioticy import bootstrap, parts
from servioticy.errors import SettingsError
from servioticy.settings import Settings, changed

ROOT = Path(__file__).parents[2]
PROGRAMS = ("api", "ingest", "broker", "delivery", "functions", "pipeline", "servioticy")
BUILDERS = ("servioticy/bootstrap.py", "servioticy/parts.py")
BUILT = {"SandboxPool", "PostgresPartitionStore", "LogEnds", "LogWriter", "Emitter"}


def test_a_sandbox_is_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Path, SandboxOptions]] = []
    monkeypatch.setattr(parts, "SandboxPool", lambda *given: made.append(given))
    monkeypatch.setattr(parts.javascript, "require", lambda _settings, engine: Path(engine))
    settings = changed(
        Settings(),
        script_budget_ms=7,
        script_budget_ms_per_update=0.5,
        sandbox_workers=3,
        sandbox_protection="any",
        sandbox_engine="quickjs",
    )
    bootstrap.sandbox_pool(settings)
    bootstrap.sandbox_pool(settings, engine="v8", max_workers=9, nice=0)

    described = SandboxOptions(
        budget_ms=7,
        budget_ms_per_update=0.5,
        max_workers=3,
        unprotected=True,
        engine="quickjs",
        nice=NICE,
    )
    other = replace(described, engine="v8", max_workers=9, nice=0)
    assert made == [(Path("quickjs"), described), (Path("v8"), other)]


def test_code_in_backfills_yields_as_backfills_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for either."""
    yielded: list[int] = []

    def made(_settings: Settings, *, max_workers: int, nice: int = NICE) -> None:
        assert max_workers
        yielded.append(nice)

    monkeypatch.setattr(bootstrap, "sandbox_pool", made)
    monkeypatch.setattr(bootstrap, "filled", lambda _settings: None)
    monkeypatch.setattr(process, "serve", lambda _answer, nice: yielded.append(nice))
    process.main()

    assert yielded == [process.NICE, process.NICE]


def test_without_a_postgres_it_is_said_how_to_name_one() -> None:
    with pytest.raises(SettingsError, match="SERVIOTICY_DSN"):
        bootstrap.connect(Settings())


def test_programs_build_nothing_by_themselves() -> None:
    """What is built in two places is built in two ways one day."""
    built: Counter[str] = Counter()
    for file in (file for name in PROGRAMS for file in (ROOT / name).rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if name in BUILDERS or name.startswith("benchmarks/"):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in BUILT:
                built[f"{name}: {called.id}"] += 1

    assert not built
