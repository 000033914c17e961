"""What each command of `servioticy` does; what it needs is imported only when it runs."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Mapping

from servioticy.errors import SettingsError
from servioticy.settings import Settings, to_environment


def up(parsed: argparse.Namespace, settings: Settings) -> int:
    """Run the platform, with a demonstration if asked for."""
    require("local")
    from command import up

    demonstration = None
    if parsed.demo or parsed.exit_after_replay:
        demonstration = ["--speed", str(parsed.speed)]
        demonstration += ["--again"] if parsed.again else []
        demonstration += ["--last"] if parsed.exit_after_replay else []
    return up.run(settings, demonstration, parsed.exit_after_replay)


def program(parsed: argparse.Namespace, settings: Settings) -> int:
    """Become the program: it gets our signals and its exit code is ours."""
    require(parsed.program)
    become([sys.executable, "-P", "-m", parsed.program], to_environment(settings))
    return 0


def migrate(_parsed: argparse.Namespace, settings: Settings) -> int:
    """Bring the schema up to date, and make the topics where a broker is known."""
    require("platform")
    from command import found as where
    from command import platform, running
    from servioticy.storage.roles import Role

    with running.database(settings, Role.API):
        _say("schema: up to date")
    found = where.of(settings)
    if found.log.bootstrap_servers:
        platform.prepare_stores(found)
        _say("topics: there")
    return 0


def tenant_create(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print a new token of the tenant."""
    require("platform")
    from command import running

    if not parsed.name.strip():
        raise SettingsError("a tenant needs a name")
    _say(running.create_tenant(settings, parsed.name))
    return 0


def tenant_quota(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print a tenant's quotas, once one of them has been given, if one is named."""
    require("platform")
    from command import running
    from servioticy.domain.quotas import quotas as quotas_by
    from servioticy.storage.quotas import PostgresQuotas
    from servioticy.storage.roles import Role

    known = quotas_by(settings)
    if parsed.quota is not None and parsed.quota not in known:
        raise SettingsError(f"there is no quota {parsed.quota}; known: {', '.join(known)}")
    if (parsed.quota is None) != (parsed.most is None):
        raise SettingsError("how much may it have? give a number, or `default`")
    with running.database(settings, Role.API) as database:
        quotas = PostgresQuotas(database)
        if parsed.quota is not None:
            quotas.give(parsed.name, parsed.quota, _most(parsed.most))
        found = quotas.of_tenant(parsed.name)
    if found is None:
        raise SettingsError(f"there is no tenant {parsed.name}")
    for name, quota in known.items():
        given = "" if name not in found else "  (given)"
        _say(f"{name:18} {found.get(name, quota.most):>15} {quota.unit}{given}")
    return 0


def _most(text: str) -> int | None:
    if text == "default":
        return None
    if not text.isascii() or not text.isdigit() or int(text) >= 2**63:
        raise SettingsError(f"{text} is no whole number")
    return int(text)


def tenant_delete(parsed: argparse.Namespace, settings: Settings) -> int:
    """Let nobody of the tenant in any more; what is stored of it goes from then on."""
    require("platform")
    from command import running

    if not running.delete_tenant(settings, parsed.name):
        raise SettingsError(f"there is no tenant {parsed.name}")
    _say("deleted: its tokens are good no longer; what is stored of it goes while the API runs")
    return 0


def rebalance(parsed: argparse.Namespace, settings: Settings) -> int:
    """Spread components anew over the partitions, or tell what would move."""
    require("platform")
    from command import rebalance

    return rebalance.run(settings, parsed.moves, plan_only=parsed.plan, as_json=parsed.json)


def doctor(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print what this machine has and lacks, or accept that a part of the log is lost."""
    require("platform")
    from command import doctor

    if parsed.worker and parsed.accept_log_loss:
        raise SettingsError("--worker and --accept-log-loss are each for themselves")
    if parsed.accept_log_loss:
        return doctor.accept_log_loss(settings)
    if not parsed.worker:
        return doctor.run(settings)
    from command import worker_machine

    return doctor.told(worker_machine.examine(settings))


def pack(parsed: argparse.Namespace, settings: Settings) -> int:
    """Write the environment of workers to a file, and print its sum."""
    require("pipeline")
    from command.packing import packed

    digest = packed.pack(settings, parsed.file, with_spark=parsed.spark)
    _say(f"{digest}  {parsed.file}")
    return 0


def backup(parsed: argparse.Namespace, settings: Settings) -> int:
    """Write all of the platform to a file."""
    require("platform")
    from command import backup

    return backup.run_backup(settings, parsed.file)


def restore(parsed: argparse.Namespace, settings: Settings) -> int:
    """Fill an empty platform from such a file."""
    require("platform")
    from command import backup

    return backup.run_restore(settings, parsed.file)


def bench(parsed: argparse.Namespace, settings: Settings) -> int:
    """Become the measurement, told where the platform is."""
    from command import found as where

    if importlib.util.find_spec("benchmarks.__main__") is None:
        raise SettingsError("this installation has no measurements (benchmarks)")
    command = [sys.executable, "-P", "-m", "benchmarks", parsed.name, *parsed.rest]
    become(command, to_environment(where.of(settings)))
    return 0


def require(extra: str) -> None:
    """Raise SetupError where a part of the package is not installed that a command needs."""
    from command import extras

    extras.require(extra)


def become(command: list[str], environment: Mapping[str, str]) -> None:
    """Be this program from now on, with this added to our environment."""
    sys.stdout.flush()
    os.execve(command[0], command, {**os.environ, **environment})  # noqa: S606


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
