"""Which programs of a call do not run, and why: not allowed, suspended, never ready."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cachetools import LRUCache, TTLCache

from sandbox.host.allowance import Allowance
from sandbox.host.approval import Approval
from sandbox.host.breaker import WINDOW_SECONDS, Breaker
from sandbox.host.grown import RAN, Part
from sandbox.host.knowledge import programs_of
from sandbox.host.usage import ProcessorSeconds, Usage
from sandbox.host.worker_client import Failure
from sandbox.program import Fault
from sandbox.trees import Call, Wiring

MAX_WIRINGS = 20_000
"""Whose programs are known to be allowed."""

MAX_UNREADY = 10_000

KILL_CLASS = frozenset({"timeout", "oom", "crash"})

Refusal = tuple[str, str]
"""A kind of verdict and a message."""


class Refusals:
    """Refusals are made before a call is sent, so that no code of such a program is run."""

    def __init__(self, approval: Approval | None, breaker: Breaker, usage: Usage) -> None:
        """Without `approval` everything is allowed."""
        self._approval, self._breaker, self._usage = approval, breaker, usage
        self._faults: LRUCache[str, dict[int, Refusal]] = LRUCache(MAX_WIRINGS)
        self._unready: TTLCache[tuple[str, str], Refusal] = TTLCache(MAX_UNREADY, WINDOW_SECONDS)
        """By tenant and program: another tenant may have the same one, and a sound worker."""
        self._with_unready: TTLCache[str, None] = TTLCache(MAX_UNREADY, WINDOW_SECONDS)

    def learn(self, tenant: str, calls: Sequence[Call], allowance: Allowance) -> None:
        """Find out which of the calls' programs are allowed. Raises TookTooLong."""
        approval = self._approval
        if approval is None:
            return
        new = {each.wiring.id: each.wiring for each in calls if each.wiring.id not in self._faults}
        if not new:
            return
        codes = {
            name: {code.id: code for code in programs_of(wiring).values()}
            for name, wiring in new.items()
        }
        every = [code for some in codes.values() for code in some.values()]
        try:
            approval.learn(tenant, every, allowance)
        finally:
            seconds = approval.take_cpu()
            self._usage.charge(tenant, seconds)
            allowance.used = allowance.used.plus(ProcessorSeconds(preparing=seconds))
        for name, wiring in new.items():
            if all(approval.knows(tenant, code) for code in codes[name].values()):
                self._faults[name] = _faults_of(approval, tenant, wiring)

    def applied(self, tenant: str, call: Call) -> Call:
        """Return the call with what does not run of it."""
        refused = {**self._not_allowed(tenant, call), **self._not_ready(tenant, call)}
        if not self._breaker.is_quiet:
            for node, name in enumerate(call.names):
                found = self._breaker.suspension(name) if name else None
                if found:
                    refused[node] = "suspended", found.text
        return replace(call, refused={**call.refused, **refused}) if refused else call

    def note_survivors(self, calls: Sequence[Call], parts: Sequence[Part]) -> None:
        """Note which programs computed and did not end their process."""
        self._breaker.survived(
            call.names[each.node]
            for call, part in zip(calls, parts, strict=True)
            for each in part.ended
            if each.kind in RAN
        )

    def blame(self, tenant: str, name: str, failure: Failure) -> Fault:
        """Note that a program has ended a process, and return its fault with what follows."""
        self._breaker.killed(tenant, name, failure.kind)
        found = self._breaker.suspension(name)
        sequel = f"; suspended {found.text}" if found else ""
        return Fault(failure.kind, failure.message + sequel)

    def blame_unready(
        self, tenant: str, calls: Iterable[Call], program: str, failure: Failure
    ) -> None:
        """Note that a program cannot even be made ready: its code runs when it is only read."""
        self._unready[tenant, program] = failure.kind, failure.message
        self._with_unready[tenant] = None
        names = (
            call.names[node]
            for call in calls
            for node, code in programs_of(call.wiring).items()
            if code.id == program
        )
        if failure.kind in KILL_CLASS:
            self._breaker.killed(tenant, next(names), failure.kind)

    def _not_allowed(self, tenant: str, call: Call) -> dict[int, Refusal]:
        approval = self._approval
        if approval is None:
            return {}
        known = self._faults.get(call.wiring.id)
        if known is not None:
            return known
        # Some of it cannot be checked now.
        return _faults_of(approval, tenant, call.wiring)

    def _not_ready(self, tenant: str, call: Call) -> dict[int, Refusal]:
        if tenant not in self._with_unready:
            return {}
        codes = programs_of(call.wiring)
        found = {node: self._unready.get((tenant, code.id)) for node, code in codes.items()}
        return {node: why for node, why in found.items() if why}


def _faults_of(approval: Approval, tenant: str, wiring: Wiring) -> dict[int, Refusal]:
    """The composites whose programs may not run; thousands of them may have the same."""
    programs = programs_of(wiring)
    codes = {code.id: code for code in programs.values()}
    faults = {name: approval.fault(tenant, code) for name, code in codes.items()}
    if not any(faults.values()):
        return {}
    found = {node: faults[code.id] for node, code in programs.items()}
    return {node: (fault.kind, fault.message) for node, fault in found.items() if fault}
