"""How many updates a second come around a moment, as the figure 5 of CEPLESS has it.

(Luthra et al., Operator as a Service, 2020: the throughput before, while and after an operator is
replaced.) Of several moments what came in each interval behind them is told together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 960, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 60, 50

STYLE = """
    svg { color-scheme: light dark; font: 14px system-ui, sans-serif }
    text { fill: #17202b } .end { text-anchor: end } .middle { text-anchor: middle }
    .ground { fill: #ffffff } .axis { stroke: #8a94a0 } .span { fill: #bcd9f5 }
    .mean { fill: none; stroke: #17202b; stroke-width: 2 } .moment { stroke: #c81e1e }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8edf2 } .ground { fill: #12181f } .axis { stroke: #6b7683 }
      .span { fill: #1f4468 } .mean { stroke: #e8edf2 } .moment { stroke: #ff7b72 }
    }
"""


class Rate(NamedTuple):
    """Updates a second in an interval."""

    begin: float
    """in seconds behind the moment, or before it"""
    mean: float
    least: float
    most: float
    """of all moments"""


def rates(
    came: Sequence[float], moments: Sequence[float], before: float, after: float, width: float
) -> list[Rate]:
    """Return what came in each interval of `width` seconds, from `before` until `after` them.

    All of it in seconds by one clock. Moments are at least one.
    """
    count = round((before + after) / width)
    found = []
    for number in range(count):
        begin = number * width - before
        each = [
            sum(moment + begin <= at < moment + begin + width for at in came) / width
            for moment in moments
        ]
        found.append(Rate(begin, sum(each) / len(each), min(each), max(each)))
    return found


def lines(found: Sequence[Rate]) -> Iterator[str]:
    """Return them as a table."""
    yield f"{'ms':>8} {'mean/s':>8} {'least':>8} {'most':>8}"
    for each in found:
        yield f"{1000 * each.begin:>8.0f} {each.mean:>8.0f} {each.least:>8.0f} {each.most:>8.0f}"


def drawn(found: Sequence[Rate], title: str) -> str:
    """Return them as SVG: the mean as a line, and between the least and the most a band."""
    title = escape(title)
    first, last = found[0].begin, found[-1].begin
    top = max(each.most for each in found) or 1.0
    bottom = HEIGHT - BOTTOM

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / (last - first or 1.0)

    def y(rate: float) -> float:
        return bottom - (bottom - TOP) * rate / top

    def line(points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{x(at):.1f},{y(rate):.1f}" for at, rate in points)

    highs = [(each.begin, each.most) for each in found]
    lows = [(each.begin, each.least) for each in reversed(found)]
    means = [(each.begin, each.mean) for each in found]
    least = min(each.least for each in found)
    told = f"from {first:.1f} s to {last:.1f} s; the least {least:.0f}, the most {top:.0f}"
    shown = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' role="img" aria-labelledby="title about">',
        f'<title id="title">{title}</title>',
        f'<desc id="about">Updates a second {told}.</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text x="{LEFT}" y="34">{title}</text>',
        f'<polygon class="span" points="{line([*highs, *lows])}"/>',
        f'<polyline class="mean" points="{line(means)}"/>',
        f'<line class="moment" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{TOP}" y2="{bottom}"/>',
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>',
    ]
    for rate in (0.0, top / 2, top):
        shown.append(f'<text class="end" x="{LEFT - 8}" y="{y(rate) + 5:.1f}">{rate:,.0f}</text>')
    for at in (first, 0.0, last):
        place = f'x="{x(at):.1f}" y="{bottom + 24}"'
        shown.append(f'<text class="middle" {place}>{at:g} s</text>')
    return "\n".join([*shown, "</svg>", ""])
