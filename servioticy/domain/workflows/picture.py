"""A workflow as an SVG: its procedures in columns, from the source on the left to the sink."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from servioticy.domain.layout import HEIGHT, WIDTH, laid_out
from servioticy.domain.workflows.model import CALLBACK, COLLECT, NONE, SINK, SOURCE, Workflow

_SHOWN = 26
"""Characters of a line of a box."""


def picture(workflow: Workflow, waiting: Mapping[str, int] | None = None) -> str:
    """Return the SVG; with `waiting` how many atoms wait for each step is told in its box."""
    names = [SOURCE, *[each.name for each in workflow.procedures], SINK]
    edges = [
        (name, workflow.name_of(step)) for name, steps in workflow.links.items() for step in steps
    ]
    layout = laid_out(names, edges)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{layout.width}" height="{layout.height}"'
        f' viewBox="0 0 {layout.width} {layout.height}" font-family="sans-serif" font-size="13">',
        f"<title>{escape(', '.join(f'{left} to {right}' for left, right in edges))}</title>",
        f'<rect width="{layout.width}" height="{layout.height}" fill="#fff"/>',
    ]
    parts += [f'<path d="{each}" fill="none" stroke="#667" />' for each in layout.lines]
    for name in names:
        box = layout.boxes[name]
        fill = "#e7f0e4" if name in (SOURCE, SINK) else "#e6ecf7"
        lines = [name, _about(workflow, name)]
        if waiting is not None and name != SOURCE:
            lines[1] = f"{lines[1]} {waiting.get(name, 0)} waiting".strip()
        parts.append(
            f'<rect x="{box.x}" y="{box.y}" width="{WIDTH}" height="{HEIGHT}" rx="6"'
            f' fill="{fill}" stroke="#667"/>'
        )
        for at, line in enumerate(lines):
            shown = line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
            weight = ' font-weight="bold"' if at == 0 else ' fill="#445"'
            y = box.y + 23 + 20 * at
            parts.append(f'<text x="{box.x + 10}" y="{y}"{weight}>{escape(shown)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _about(workflow: Workflow, name: str) -> str:
    if name == SOURCE:
        if workflow.files is not None:
            return f"{workflow.files.format} of {workflow.files.store}"
        return f"stream {workflow.source.stream}" if workflow.source else "HTTP"
    if name != SINK:
        return ""
    if workflow.sink_stream is not None:
        return f"stream {workflow.sink_stream.stream}"
    if workflow.sink_files is not None:
        return f"parquet in {workflow.sink_files.store}"
    if workflow.sink_table is not None:
        return f"table {workflow.sink_table.table} of {workflow.sink_table.database}"
    return {COLLECT: "collected", NONE: "nowhere", CALLBACK: workflow.sink_url}[workflow.sink]
