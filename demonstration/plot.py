"""Bands as a picture: each series with what was expected of it, and what fell out, as one SVG."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, NamedTuple

from demonstration.smoothing import Point

WIDTH, LEFT, RIGHT = 960, 70, 20
HEAD, PANEL, PLOT = 84, 190, 130
"""Heights: of title and legend, of a series with its heading and dates, of its curves."""

TITLE = "What was expected of each series, and what fell out of it"
STYLE = """
    svg { color-scheme: light dark; font: 14px system-ui, sans-serif }
    text { fill: #17202b } .small { font-size: 12px } .end { text-anchor: end }
    .ground { fill: #ffffff } .axis { stroke: #8a94a0 } path, polyline { fill: none }
    .smoothed { stroke-width: 3 }
    .band { fill: #bcd9f5 } .smoothed { stroke: #5c9bd8 } .value { stroke: #17202b }
    .anomaly { fill: #c81e1e; stroke: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8edf2 } .ground { fill: #12181f } .axis { stroke: #6b7683 }
      .band { fill: #1f4468 } .smoothed { stroke: #4a86c5 } .value { stroke: #e8edf2 }
      .anomaly { fill: #ff7b72; stroke: #12181f }
    }
"""
"""Colours for a light and a dark ground; what is an anomaly is told by its shape, too."""

LEGEND = (
    ('<polyline class="value" points="{x},60 {to},60"/>', "value"),
    ('<polyline class="smoothed" points="{x},60 {to},60"/>', "smoothed"),
    ('<rect class="band" x="{x}" y="53" width="24" height="14"/>', "band of 1.3 deviations"),
    ('<circle class="anomaly" cx="{middle}" cy="60" r="4"/>', "anomaly: outside the band"),
)
LEGEND_STEP = 190


class Panel(NamedTuple):
    """A series with its band."""

    label: str
    unit: str
    points: Sequence[Point]
    anomalies: Collection[int]
    """The timestamps of those that fell out."""


def points(updates: Iterable[Mapping[str, Any]]) -> list[Point]:
    """Return the points of a stored band."""
    found = []
    for update in updates:
        values = {name: each["current-value"] for name, each in update["channels"].items()}
        found.append(Point(update["lastUpdate"], **values))
    return found


def times(updates: Iterable[Mapping[str, Any]]) -> set[int]:
    """Return the timestamps of stored updates."""
    return {update["lastUpdate"] for update in updates}


def drawn(panels: Sequence[Panel]) -> str:
    """Return the picture of these series, one below the other."""
    height = HEAD + PANEL * len(panels)
    told = "; ".join(_told(each) for each in panels)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' role="img" aria-labelledby="title about">',
        f'<title id="title">{TITLE}</title>',
        f'<desc id="about">{escape(told)}.</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        f'<text x="{LEFT}" y="34">{TITLE}</text>',
        *_legend(),
    ]
    for number, panel in enumerate(panels):
        lines += _panel(panel, HEAD + PANEL * number)
    return "\n".join([*lines, "</svg>", ""])


def _told(panel: Panel) -> str:
    span = (
        f"from {_date(panel.points[0].at)} to {_date(panel.points[-1].at)}" if panel.points else ""
    )
    return f"{panel.label}: {len(panel.points)} values {span}, {len(panel.anomalies)} anomalies"


def _legend() -> Iterator[str]:
    for number, (shape, words) in enumerate(LEGEND):
        x = LEFT + LEGEND_STEP * number
        yield shape.format(x=x, to=x + 24, middle=x + 12)
        yield f'<text class="small" x="{x + 32}" y="64">{words}</text>'


def _panel(panel: Panel, top: int) -> Iterator[str]:
    yield f'<g><text x="{LEFT}" y="{top + 14}">{escape(f"{panel.label}, {panel.unit}")}</text>'
    if panel.points:
        yield from _curves(panel, top + 24)
    yield "</g>"


def _curves(panel: Panel, top: int) -> Iterator[str]:
    first, last = panel.points[0].at, panel.points[-1].at
    least = min(min(each.low, each.value) for each in panel.points)
    most = max(max(each.high, each.value) for each in panel.points)

    def x(at: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / (last - first or 1)

    def y(value: float) -> float:
        return top + PLOT - PLOT * (value - least) / (most - least or 1)

    def line(each_of: Iterable[tuple[int, float]]) -> str:
        return " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in each_of)

    lows = [(each.at, each.low) for each in reversed(panel.points)]
    highs = [(each.at, each.high) for each in panel.points]
    bottom = top + PLOT
    yield f'<polygon class="band" points="{line([*highs, *lows])}"/>'
    yield f'<polyline class="smoothed" points="{line((e.at, e.smoothed) for e in panel.points)}"/>'
    yield f'<polyline class="value" points="{line((e.at, e.value) for e in panel.points)}"/>'
    for each in panel.points:
        if each.at in panel.anomalies:
            yield (
                f'<circle class="anomaly" cx="{x(each.at):.1f}" cy="{y(each.value):.1f}" r="3">'
                f"<title>{escape(_words(each, panel.unit))}</title></circle>"
            )
    yield f'<path class="axis" d="M{LEFT} {top}V{bottom}H{WIDTH - RIGHT}"/>'
    yield f'<text class="small end" x="{LEFT - 6}" y="{top + 10}">{most:.1f}</text>'
    yield f'<text class="small end" x="{LEFT - 6}" y="{bottom}">{least:.1f}</text>'
    yield f'<text class="small" x="{LEFT}" y="{bottom + 16}">{_date(first)}</text>'
    yield f'<text class="small end" x="{WIDTH - RIGHT}" y="{bottom + 16}">{_date(last)}</text>'


def _words(point: Point, unit: str) -> str:
    when = datetime.fromtimestamp(point.at, UTC)
    return (
        f"{when:%F %R} UTC: {point.value:g} {unit}, expected {point.low:.2f} to {point.high:.2f}"
    )


def _date(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%F}"
