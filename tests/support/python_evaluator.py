"""An evaluator in Python, for the engine's laws: composites are computed by one function.

It grows trees as `plain_trees` does, which shares no code with the engine or the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import plain_trees
from plain_trees import Computation, Ends

from sandbox import ProcessorSeconds
from sandbox.program import Program
from sandbox.trees import Call, Grown


class Trigger(NamedTuple):
    """What a computation is given beside its inputs."""

    name: str
    """Of the composite's code."""
    argument: int
    timestamp: int
    is_condition: bool = False
    """Whether it is asked if windows come out, and not what comes of them."""


Compute = Callable[[Trigger, list[bytes | None]], object]
"""The new value, or None: the documents of the inputs. Raises Ends."""


class PythonEvaluator:
    """Grows trees; `compute` is the code of all composites."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self.asked: list[tuple[str, Sequence[Call], float | None]] = []

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        self.asked.append((tenant, calls, within))
        return [self._grown(call) for call in calls]

    def is_ready(self, _tenant: str) -> bool:
        return True

    def processor_seconds(self, _tenant: str) -> ProcessorSeconds:
        return ProcessorSeconds()

    def _grown(self, call: Call) -> Grown:
        nodes = [
            replace(node, code=partial(self._channels, name, node.code))
            if node.code is not None
            else node
            for node, name in zip(call.wiring.nodes, call.names, strict=True)
        ]
        wiring = replace(call.wiring, nodes=tuple(nodes))
        grown = plain_trees.grow(replace(call, wiring=wiring))
        return replace(grown, failed=len(grown.made) < len(call.trees))

    def _channels(self, name: str, code: Any, computation: Computation) -> Any:
        is_condition = isinstance(code, Program) and code.is_condition
        trigger = Trigger(name, computation.argument, computation.trigger.timestamp, is_condition)
        value = self._compute(trigger, [each and each.document for each in computation.inputs])
        if value is None:
            raise Ends("filtered")
        return {"v": {"current-value": value}}
