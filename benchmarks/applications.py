"""MOSAIC's evaluation: the travelling salesman on several engines, with the same aspects.

Both scenarios of the paper, a second and ten milliseconds between two inputs. What comes of it are
box plots as its Figures 5 to 7: the runtime of each step, the latency between steps, and the time
from the first beginning to the last end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from monitoring.analysis import boxes, steps
from monitoring.analysis.analysing import Analysis, Spread, gathered, spread
from monitoring.analysis.steps import Step
from monitoring.applications import deploying, repository, scheduled, states
from monitoring.applications.repository import Place
from servioticy.errors import SettingsError, Unavailable
from servioticy.settings import Settings, changed, to_environment

SALESMAN = Path(__file__).parent / "salesman"
LOOP, CONSUMER, SPARK = "loop", "consumer", "pyspark"
ENTRIES = {
    LOOP: ("python", "loop:main"),
    CONSUMER: ("python", "consumer:main"),
    SPARK: ("pyspark", "job:main"),
}
"""How each is run: by whose driver, and what."""
PAUSES = {"1 s": 1.0, "10 ms": 0.01}
SECONDS = 3_600
NAME = "salesman"


def package(folder: Path, engine: str, arguments: Sequence[str], more: str = "") -> Path:
    """Write the salesman as a package for one of ENTRIES; `more` are other aspects."""
    folder.mkdir(parents=True)
    driver, entry = ENTRIES[engine]
    for each in SALESMAN.glob("*.py"):
        shutil.copy(each, folder)
    head = [
        f'name = "{NAME}"',
        f'engine = "{driver}"',
        f'entry = "{entry}"',
        f"arguments = {json.dumps(list(arguments))}",
    ]
    aspects = (SALESMAN / "aspects.toml").read_text(encoding="utf-8")
    text = "\n".join([*head, "", aspects, more])
    (folder / "application.toml").write_text(text, encoding="utf-8")
    return folder


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Run each engine in each scenario, print what a step took, and draw it."""
    parser = argparse.ArgumentParser("servioticy bench applications")
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--vertices", type=int, default=8)
    parser.add_argument("--characters", type=int, default=17_000_000)
    parser.add_argument("--engines", nargs="+", choices=ENTRIES, default=[LOOP, SPARK])
    parser.add_argument("--svg", type=Path, help="folder for figure5.svg to figure7.svg")
    options = parser.parse_args(arguments)
    if CONSUMER in options.engines and not settings.log.bootstrap_servers:
        raise SettingsError("a consumer needs a broker: name a platform that runs")
    found: dict[str, list[Step]] = {}
    for engine in options.engines:
        for pause, seconds in PAUSES.items():
            chosen = ["--runs", str(options.runs), "--pause", str(seconds)]
            chosen += ["--vertices", str(options.vertices)]
            chosen += ["--characters", str(options.characters)]
            if engine == CONSUMER:
                brokers = settings.log.bootstrap_servers
                chosen += ["--brokers", brokers, "--topic", f"salesman-{uuid.uuid4().hex}"]
            found[f"{engine}, {pause}"] = measured(settings, engine, chosen)
    for title, spreads in figures(found).items():
        print(title)
        for each in spreads:
            print(
                f"  {each.what:42s} {each.node:18s} {each.count:6,d} times, middle "
                f"{each.middle / 1e6:12.3f} ms, {each.low / 1e6:.3f} to {each.high / 1e6:.3f}"
            )
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    if options.svg is not None:
        options.svg.mkdir(parents=True, exist_ok=True)
        for name, text in drawn(found).items():
            (options.svg / f"{name}.svg").write_text(text, encoding="utf-8")


def measured(settings: Settings, engine: str, arguments: Sequence[str]) -> list[Step]:
    """Deploy the salesman in a data folder of its own, let it end, and return its steps.

    Raises Unavailable where it fails.
    """
    with TemporaryDirectory() as scratch:
        here = changed(settings, data=f"{scratch}/data")
        here.data_path.mkdir()
        folder = package(Path(scratch) / "package", engine, arguments)
        found, _ = deploying.deploy(here, folder)
        done = subprocess.run(
            scheduled.command(NAME, found.turn),
            env={**os.environ, **to_environment(here)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
        state = states.of(here.data_path, repository.registered(here.data_path, NAME))
        if state.state != "ended" or state.lost:
            end = done.stdout.decode(errors="replace")[-2_000:]
            raise Unavailable(f"{engine} has {state.state} ({state.why}): {end}")
        return steps.read(Place(here.data_path, NAME).files()).steps


def figures(found: Mapping[str, Sequence[Step]]) -> dict[str, list[Spread]]:
    """Return what the paper's Figures 5 to 7 show, by title: a row for each scenario."""
    runtime, latency, total = list[Spread](), list[Spread](), list[Spread]()
    for name, all_steps in found.items():
        values = gathered([each._replace(node=name) for each in all_steps])
        runtime += [spread(key, each) for key, each in values.runtime.items()]
        latency += [spread((what, name), each) for (what, _), each in values.latency.items()]
        begun = min(each.start for each in all_steps)
        total.append(spread(("all runs", name), [max(x.end for x in all_steps) - begun]))
        total.append(spread(("an input", name), values.sequences))
    by = lambda each: (each.what, each.node)  # noqa: E731
    return {
        "Figure 5: runtime of steps": sorted(runtime, key=by),
        "Figure 6: latency between steps": sorted(latency, key=by),
        "Figure 7: from the first beginning to the last end": sorted(total, key=by),
    }


def drawn(found: Mapping[str, Sequence[Step]]) -> dict[str, str]:
    """Return each figure as SVG, by the name of its file."""
    runtime, latency, total = figures(found).values()
    count = sum(map(len, found.values()))
    return {
        "figure5": boxes.drawn(Analysis(runtime, [], [], [], count, 0)),
        "figure6": boxes.drawn(Analysis([], latency, [], [], count, 0)),
        "figure7": boxes.drawn(Analysis([], [], total, [], count, 0)),
    }
