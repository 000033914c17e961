"""Alert rules and dashboards as Prometheus itself understands them, where it is to be had."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks import debian
from servioticy.settings import load

FILES = Path(__file__).parents[2] / "deploy" / "monitoring"
SECONDS = 120
FETCH_SECONDS = 90


@pytest.fixture(scope="module")
def promtool() -> str:
    """Skips where it is not here and not to be had, and says why."""
    if found := shutil.which("promtool"):
        return found
    folder = load().embedded.jars_path.parent / "prometheus"
    try:
        return str(debian.unpacked(folder, ["prometheus"], FETCH_SECONDS) / "usr/bin/promtool")
    except (debian.NotUnpacked, OSError) as error:
        pytest.skip(f"there is no promtool: {error}")


def asked(promtool: str, *words: str) -> None:
    done = subprocess.run(
        [promtool, *words], cwd=FILES, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_prometheus_takes_the_rules_and_finds_the_file_by_its_configuration(promtool: str) -> None:
    asked(promtool, "check", "config", "prometheus.yml")


@pytest.mark.slow
def test_each_alert_fires_when_it_should_and_is_silent_before(promtool: str) -> None:
    asked(promtool, "test", "rules", "servioticy.rules.test.yml")


def test_no_alert_is_without_a_case() -> None:
    """Each has one in which it fires."""
    rules = yaml.safe_load((FILES / "servioticy.rules.yml").read_text("utf-8"))
    cases = yaml.safe_load((FILES / "servioticy.rules.test.yml").read_text("utf-8"))
    fired = {
        case["alertname"]
        for test in cases["tests"]
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }

    assert fired == {rule["alert"] for group in rules["groups"] for rule in group["rules"]}


@pytest.mark.slow
def test_prometheus_understands_what_the_dashboard_asks(promtool: str, tmp_path: Path) -> None:
    dashboard = json.loads((FILES / "grafana-dashboard.json").read_text("utf-8"))
    asks = [
        target["expr"].replace("$__rate_interval", "5m")
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]
    rules = [{"record": f"asked:{number}", "expr": each} for number, each in enumerate(asks)]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    assert asks
    asked(promtool, "check", "rules", str(file))
