"""The sandbox: tenants' JavaScript, in processes that can be killed.

Start at `pool.py`. The parts, from the caller inwards: `pool` settles who is to blame,
`client` holds one worker, `zygote` asks the `zygote` for it, `worker` serves frames,
`compile` proves and assembles, `engine` is V8, `runner.js` is the fold. What is promised
and what is not: README.md.
"""

from sandbox.host.allowance import TookTooLong
from sandbox.host.breaker import Suspension
from sandbox.host.options import SandboxOptions
from sandbox.host.pool import SandboxPool
from sandbox.host.zygote_client import InfraError
from sandbox.program import (
    FAULT_KINDS,
    INPUT,
    RESULT,
    Assignment,
    Binding,
    Call,
    ChannelCode,
    Computation,
    Fault,
    Outcome,
    Program,
    Step,
    Value,
    argument_names,
)

__all__ = [
    "FAULT_KINDS",
    "INPUT",
    "RESULT",
    "Assignment",
    "Binding",
    "Call",
    "ChannelCode",
    "Computation",
    "Fault",
    "InfraError",
    "Outcome",
    "Program",
    "SandboxOptions",
    "SandboxPool",
    "Step",
    "Suspension",
    "TookTooLong",
    "Value",
    "argument_names",
]
