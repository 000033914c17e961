"""Spreads as a picture: a box plot for each, as one SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TypeAlias

from monitoring.analysis.analysing import Analysis, Spread

WIDTH, LEFT, RIGHT = 960, 330, 90
HEAD, ROW, GAP = 60, 30, 56
MOST = 60
"""Boxes of one heading; a picture of more nobody reads."""
STYLE = """
    svg { color-scheme: light dark; font: 14px system-ui, sans-serif }
    text { fill: #17202b } .small { font-size: 12px } .end { text-anchor: end }
    .ground { fill: #ffffff } .axis { stroke: #8a94a0 }
    .box { fill: #bcd9f5; stroke: #5c9bd8 } .middle { stroke: #17202b; stroke-width: 2 }
    .reach { stroke: #5c9bd8 } .most { fill: #c81e1e }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8edf2 } .ground { fill: #12181f } .axis { stroke: #6b7683 }
      .box { fill: #1f4468; stroke: #4a86c5 } .middle { stroke: #e8edf2 }
      .reach { stroke: #4a86c5 } .most { fill: #ff7b72 }
    }
"""
NS_OF_MS = 1e6

Scale: TypeAlias = Callable[[float], float]


def drawn(analysis: Analysis) -> str:
    """Return the picture: the middle half as a box, a line from the least to p99, and the most."""
    parts = [
        ("Runtime of steps", analysis.runtime[:MOST]),
        ("Latency between steps", analysis.latency[:MOST]),
        ("Runtime of sequences", analysis.sequences),
    ]
    shown = [(title, spreads) for title, spreads in parts if spreads]
    height = HEAD + sum(GAP + ROW * len(spreads) for _, spreads in shown)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' role="img" aria-labelledby="title">',
        '<title id="title">How long steps take, and what lies between them</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        f'<text x="20" y="30">{analysis.steps:,} steps; milliseconds, each ten times the one '
        "before; boxes hold the middle half, lines reach from the least to p99, a dot is the most"
        "</text>",
    ]
    top = HEAD
    for title, spreads in shown:
        lines += _panel(title, spreads, top)
        top += GAP + ROW * len(spreads)
    return "\n".join([*lines, "</svg>", ""])


def _panel(title: str, spreads: Sequence[Spread], top: int) -> Iterator[str]:
    least = math.floor(math.log10(max(1.0, min(each.least for each in spreads))))
    most = max(least + 1, math.ceil(math.log10(max(1.0, *(each.most for each in spreads)))))

    def x(ns: float) -> float:
        part = (math.log10(max(1.0, ns)) - least) / (most - least)
        return LEFT + max(0.0, part) * (WIDTH - LEFT - RIGHT)

    bottom = top + 24 + ROW * len(spreads)
    yield f'<text x="20" y="{top + 14}">{title}</text>'
    for power in range(least, most + 1):
        at = x(10.0**power)
        yield f'<path class="axis" d="M{at:.1f} {top + 22}V{bottom}"/>'
        value = f"{10.0**power / NS_OF_MS:g}"
        yield f'<text class="small" x="{at:.1f}" y="{bottom + 14}">{value}</text>'
    for number, each in enumerate(spreads):
        yield from _box(each, x, top + 24 + ROW * number + ROW // 2)


def _box(each: Spread, x: Scale, y: int) -> Iterator[str]:
    name = f"{each.what} {each.node}".strip()
    words = f"{name}: {each.count:,} times, middle {each.middle / NS_OF_MS:.3f} ms"
    low, middle, high = x(each.low), x(each.middle), x(each.high)
    yield f"<g><title>{escape(words)}</title>"
    yield f'<text class="small end" x="{LEFT - 10}" y="{y + 4}">{escape(_short(name))}</text>'
    yield f'<path class="reach" d="M{x(each.least):.1f} {y}H{x(each.p99):.1f}"/>'
    yield (
        f'<rect class="box" x="{low:.1f}" y="{y - 8}" width="{max(1.0, high - low):.1f}" '
        'height="16"/>'
    )
    yield f'<path class="middle" d="M{middle:.1f} {y - 8}v16"/>'
    yield f'<circle class="most" cx="{x(each.most):.1f}" cy="{y}" r="3"/></g>'


def _short(name: str) -> str:
    return name if len(name) <= 48 else f"{name[:22]}...{name[-23:]}"
