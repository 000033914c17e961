"""`python -m sandbox.hostile`: the fixed list, then as many generated programs as asked for.

The list twice, half of the generated each: by the realm alone, and behind the allow-list.

Prints what came of them, and everything that should not have; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from sandbox.host.options import SandboxOptions
from sandbox.host.pool import SandboxPool
from sandbox.hostile.corpus import Hostile, fixed
from sandbox.hostile.generate import generated
from sandbox.hostile.judge import MAX_NEIGHBOUR_MS, Judge, children, descriptors, resident_kib

SECONDS_BETWEEN_NEWS = 15.0
KILL = Hostile("kill", "body", "while(true){}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the options say."""
    parser = argparse.ArgumentParser("python -m sandbox.hostile", description=__doc__)
    parser.add_argument(
        "--javascript", type=Path, required=True, help="folder of acorn.js (and quickjs.wasm)"
    )
    parser.add_argument("--count", type=int, default=1000, help="generated programs (1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the generator (1)")
    parser.add_argument("--kills", type=int, default=0, help="workers ended before memory is read")
    parser.add_argument("--engine", default="v8", help="v8 or quickjs")
    parser.add_argument("--budget", type=float, default=100, help="of a frame, in ms (100)")
    options = parser.parse_args(arguments)
    wrong = 0
    half = options.count // 2
    for allow_list, numbers in ((False, range(half)), (True, range(half, options.count))):
        made = [(hostile, type_) for hostile in fixed() for type_ in ("number", "string")]
        made_up = ((generated(options.seed, number), "number") for number in numbers)
        title = f"{options.engine}, allow-list {'on' if allow_list else 'off'}"
        pool = SandboxPool(
            options.javascript,
            SandboxOptions(engine=options.engine, budget_ms=options.budget, allow_list=allow_list),
        )
        wrong += _run(title, pool, chain(made, made_up), len(made) + len(numbers))
    if options.kills:
        few = SandboxOptions(engine=options.engine, budget_ms=20, allow_list=False)
        wrong += _kill(options.kills, SandboxPool(options.javascript, few))
    return int(wrong > 0)


def _run(title: str, pool: SandboxPool, trials: Iterable[tuple[Hostile, str]], many: int) -> int:
    started = reported = time.monotonic()
    try:
        judge = Judge(pool)
        for done, (hostile, type_) in enumerate(trials):
            judge.try_out(hostile, type_)
            if time.monotonic() - reported > SECONDS_BETWEEN_NEWS:
                reported = time.monotonic()
                left = (reported - started) * (many / (done + 1) - 1)
                news = f"{done + 1} of {many}, {len(judge.verdicts.wrong)} wrong"
                print(f"{title}: {news}, about {left:.0f} s left", file=sys.stderr)  # noqa: T201
    finally:
        pool.close()
    found = judge.verdicts
    counts = ", ".join(f"{name} {count}" for name, count in found.counts.most_common())
    seconds = time.monotonic() - started
    print(f"{title}: {found.counts.total()} programs in {seconds:.0f} s: {counts}")  # noqa: T201
    p50, p99 = found.neighbour_ms(0.5), found.neighbour_ms(0.99)
    print(  # noqa: T201
        f"  slowest {found.slowest:.2f} s, neighbour p50 {p50:.2f} ms, p99 {p99:.2f} ms,"
        f" wrong {len(found.wrong)}",
        flush=True,
    )
    for each in found.wrong:
        print(f"  {each}", file=sys.stderr)  # noqa: T201
    if p99 > MAX_NEIGHBOUR_MS:
        print(f"  the neighbour waited more than {MAX_NEIGHBOUR_MS} ms", file=sys.stderr)  # noqa: T201
    return len(found.wrong) + (p99 > MAX_NEIGHBOUR_MS)


def _kill(times: int, pool: SandboxPool) -> int:
    """End many workers; the zygote must be as it was, and no process left."""
    try:
        judge = Judge(pool)
        zygote = pool._zygote.pid or 0
        judge.try_out(KILL)
        before = resident_kib(zygote), descriptors(zygote)
        for number in range(times // 2):  # each ends two: with its frame, then alone
            judge.try_out(Hostile(f"kill {number}", KILL.kind, KILL.text))
        after = resident_kib(zygote), descriptors(zygote)
        left = len(children(zygote))
    finally:
        pool.close()
    print(f"kills: zygote KiB and files {before} -> {after}, {left} children")  # noqa: T201
    grown = after[0] - before[0] > 2048 or after[1] != before[1] or left > 3
    return len(judge.verdicts.wrong) + grown


if __name__ == "__main__":
    sys.exit(main())
