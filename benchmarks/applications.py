"""MOSAIC's evaluation: the travelling salesman on several engines, with the same aspects.

Both scenarios of the paper, a second and ten milliseconds between two inputs. Box plots as its
Figures 5 to 7 come of them: the runtime of each step, the latency between steps, and the time from
the first beginning to the last end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks import ground, travelling
from benchmarks.packages import (
    CONSUMER,
    ENTRIES,
    LOOP,
    NAME,
    NO_VARIABLES,
    SPARK,
    STORM,
    STREAMS,
    package,
)
from benchmarks.travelling import Travelling
from monitoring.analysis import boxes, clocks, steps
from monitoring.analysis.analysing import Analysis, Spread, gathered, spread
from monitoring.analysis.steps import Step
from monitoring.applications import deploying, repository, scheduled, states
from monitoring.applications.repository import Place
from servioticy.embedded import jars
from servioticy.errors import Unavailable
from servioticy.settings import Settings, changed, to_environment

PAUSES = {"1 s": 1.0, "10 ms": 0.01}
SECONDS = 3_600
OUTPUT, IDLE, SUMMARY = "output", "output, idle", "summary"


class Size(NamedTuple):
    """How much is computed in each scenario."""

    runs: int
    vertices: int
    characters: int
    parts: int = 4

    def arguments(self, pause: float, engine: str) -> list[str]:
        """Return what a program of ours is told of it."""
        characters = self.characters
        if engine == STREAMS:
            characters = min(characters, travelling.CHARACTERS)
        elif engine == CONSUMER:
            characters = min(characters, 900_000)  # what a broker takes
        told = ["--runs", str(self.runs), "--pause", str(pause)]
        told += ["--vertices", str(self.vertices), "--characters", str(characters)]
        return told


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Run each engine in each scenario, print what a step took, and draw it."""
    parser = argparse.ArgumentParser("servioticy bench applications")
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--vertices", type=int, default=8)
    parser.add_argument("--characters", type=int, default=17_000_000)
    parser.add_argument("--engines", nargs="+", choices=ENTRIES, default=[LOOP, SPARK, STREAMS])
    parser.add_argument("--svg", type=Path, help="folder for figure5.svg to figure7.svg")
    options = parser.parse_args(arguments)
    size = Size(options.runs, options.vertices, options.characters)
    if STORM in options.engines:
        fetch_storm(settings)
    found: dict[str, list[Step]] = {}
    for engine in options.engines:
        for pause, some in scenarios(settings, engine, size):
            found[f"{engine}, {pause}"] = told_apart(some)
            print(f"{engine}, {pause}: {len(some):,} steps", flush=True)
    _tell(found)
    if options.svg is not None:
        options.svg.mkdir(parents=True, exist_ok=True)
        for name, text in drawn(found).items():
            (options.svg / f"{name}.svg").write_text(text, encoding="utf-8")


def scenarios(settings: Settings, engine: str, size: Size) -> Iterator[tuple[str, list[Step]]]:
    """Yield the steps of an engine in each scenario. Raises Unavailable where it fails."""
    if engine == STREAMS:
        with streams(settings, size.parts) as platform:
            for pause, seconds in PAUSES.items():
                yield pause, of_streams(settings, platform, size, seconds)
        return
    with broker(settings) if engine == CONSUMER else nullcontext(settings) as found:
        for pause, seconds in PAUSES.items():
            chosen = size.arguments(seconds, engine)
            if engine == CONSUMER:
                brokers = found.log.bootstrap_servers
                chosen += ["--brokers", brokers, "--topic", f"salesman-{uuid.uuid4().hex}"]
            yield pause, measured(settings, engine, chosen)


@contextmanager
def broker(settings: Settings) -> Iterator[Settings]:
    """The broker of a platform that is named, else one on a folder of its own."""
    if settings.log.bootstrap_servers:
        yield settings
    else:
        with ground.stores(settings) as found:
            yield found.settings


@contextmanager
def streams(settings: Settings, parts: int) -> Iterator[Travelling]:
    """A platform that runs, with the salesman's streams."""
    with ground.platform(settings) as found:
        made = Travelling(found, parts)
        try:
            yield made
        finally:
            made.close()


def of_streams(settings: Settings, streams: Travelling, size: Size, seconds: float) -> list[Step]:
    """Send inputs with a break between two; return the program's steps and the platform's."""
    traces = travelling.fresh_traces()
    chosen = [*size.arguments(seconds, STREAMS), *streams.arguments(traces)]
    created = measured(settings, STREAMS, chosen, streams.environment)
    computed = streams.found(traces, NAME, size.runs)
    if computed.unclear:
        print(f"the steps of {computed.unclear} inputs cannot be told apart", flush=True)
    return [*created, *computed.steps]


def measured(
    settings: Settings,
    engine: str,
    arguments: Sequence[str],
    environment: Mapping[str, str] = NO_VARIABLES,
) -> list[Step]:
    """Deploy the salesman in a data folder of its own, let it end, and return its steps.

    Raises Unavailable where it fails.
    """
    with TemporaryDirectory() as scratch:
        here = changed(settings, data=f"{scratch}/data")
        here.data_path.mkdir()
        folder = package(Path(scratch) / "package", engine, arguments, "", environment, settings)
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


def fetch_storm(settings: Settings) -> None:
    """Download Storm's jars, as they are locked, where they are not here. Raises SetupError."""

    def say(done: int, total: int, size: int) -> None:
        if done in (1, total):
            text = f"downloading Storm: {done} of {total}, {size / 1e6:.1f} MB\n"
            sys.stderr.write(text)

    jars.download(settings, say, jars.locked(jars.STORM))


def told_apart(all_steps: Sequence[Step]) -> list[Step]:
    """Return them with outputs that had nothing to tell under a name of their own.

    Spark calls an output for each of its batches. One in which no input was summed up is idle: its
    runtime says nothing of the application, as in the paper's Figure 5e.
    """
    summed = [each for each in all_steps if each.purpose == SUMMARY]

    def is_idle(output: Step) -> bool:
        return not any(
            each.node == output.node and output.start <= each.start <= output.end
            for each in summed
        )

    return [
        each._replace(purpose=IDLE) if each.purpose == OUTPUT and is_idle(each) else each
        for each in all_steps
    ]


def figures(found: Mapping[str, Sequence[Step]]) -> dict[str, list[Spread]]:
    """Return what the paper's Figures 5 to 7 show, by title: a row for each scenario."""
    runtime, latency, total = list[Spread](), list[Spread](), list[Spread]()
    for name, all_steps in found.items():
        values = gathered([each._replace(node=name) for each in all_steps])
        runtime += [spread(key, each) for key, each in values.runtime.items()]
        latency += [spread((what, name), each) for (what, _), each in values.latency.items()]
        begun = min(each.start for each in all_steps)
        total.append(spread(("all runs", name), [max(x.end for x in all_steps) - begun]))
        if values.sequences:
            total.append(spread(("an input", name), values.sequences))
    by = lambda each: (each.what, each.node)  # noqa: E731
    return {
        "Figure 5: runtime of steps": sorted(runtime, key=by),
        "Figure 6: latency between steps": sorted(latency, key=by),
        "Figure 7: from the first beginning to the last end": sorted(total, key=by),
    }


def skew(all_steps: Sequence[Step]) -> str:
    """Return what is known of the clocks that latencies stand on."""
    machines = {clocks.machine(each.node) for each in all_steps}
    if len(machines) == 1:
        return "one machine, one clock"
    return "; ".join(f"{x.first} and {x.second}: {x.told()}" for x in clocks.apart(all_steps))


def drawn(found: Mapping[str, Sequence[Step]]) -> dict[str, str]:
    """Return each figure as SVG, by the name of its file."""
    runtime, latency, total = figures(found).values()
    count = sum(map(len, found.values()))
    return {
        "figure5": boxes.drawn(Analysis(runtime, [], [], [], count, 0)),
        "figure6": boxes.drawn(Analysis([], latency, [], [], count, 0)),
        "figure7": boxes.drawn(Analysis([], [], total, [], count, 0)),
    }


def _tell(found: Mapping[str, Sequence[Step]]) -> None:
    for title, spreads in figures(found).items():
        print(title)
        for each in spreads:
            print(
                f"  {each.what:42s} {each.node:18s} {each.count:6,d} times, middle "
                f"{each.middle / 1e6:12.3f} ms, {each.low / 1e6:.3f} to {each.high / 1e6:.3f}"
            )
    for name, some in found.items():
        idle = sum(each.purpose == IDLE for each in some)
        print(f"{name}: {skew(some)}; {idle} idle outputs")
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
