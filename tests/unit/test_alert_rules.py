"""Alert rules and dashboards as Prometheus itself understands them, where it is to be had."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from servioticy.settings import load

FILES = Path(__file__).parents[2] / "deploy" / "monitoring"
SECONDS = 120


def fetched(target: Path) -> str:
    """Have the system's client of packages fetch it, once; return why it cannot."""
    folder = target.with_name(f".{target.name}.{os.getpid()}")
    folder.mkdir(parents=True)
    try:
        for command in (["apt-get", "download", "prometheus"], ["dpkg", "-x", "", "found"]):
            packages = [str(each) for each in folder.glob("*.deb")]
            words = [(packages or [""])[0] if each == "" else each for each in command]
            done = subprocess.run(
                words, cwd=folder, capture_output=True, text=True, timeout=SECONDS
            )
            if done.returncode:
                return done.stderr.strip()[-200:]
        (folder / "found/usr/bin/promtool").replace(target)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


@pytest.fixture(scope="module")
def promtool() -> str:
    """Skips where it is not here and not to be had, and says why."""
    if found := shutil.which("promtool"):
        return found
    target = load().embedded.jars_path.parent / "promtool"
    target.parent.mkdir(parents=True, exist_ok=True)
    why = "" if target.exists() else fetched(target)
    if why:
        pytest.skip(f"there is no promtool: {why}")
    return str(target)


def asked(promtool: str, *words: str) -> None:
    done = subprocess.run(
        [promtool, *words], cwd=FILES, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_rules_and_finds_the_file_by_its_configuration(promtool: str) -> None:
    asked(promtool, "check", "config", "prometheus.yml")


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
