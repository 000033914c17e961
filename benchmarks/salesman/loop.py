"""The salesman as a plain loop: an input is taken through all steps before the next."""

from __future__ import annotations

import argparse
import time

import salesman


def main() -> None:
    """Take so many inputs, with a break between two."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds")
    parser.add_argument("--vertices", type=int, default=8)
    parser.add_argument("--characters", type=int, default=17_000_000)
    parser.add_argument("--parts", type=int, default=4)
    chosen = parser.parse_args()
    for number in range(chosen.runs):
        given = salesman.create(f"run-{number}", chosen.vertices, chosen.characters)
        parts = salesman.paths(salesman.extract(given), chosen.parts)
        told = salesman.summarize([salesman.distance(each) for each in parts])
        print(told["id"], round(told["least"], 3), flush=True)
        time.sleep(chosen.pause)


if __name__ == "__main__":
    main()
