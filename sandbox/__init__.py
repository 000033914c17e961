"""The sandbox runs tenants' JavaScript in processes that can be killed.

`host` is what runs in our own process: start at `host/pool.py`. `guest` is what runs in a
tenant's, from `guest/zygote.py` inwards. What both speak about stands beside them: `program`
and `trees` (nouns), `encoding`, `protocol`, `text`. What is promised and what is not: README.md.
"""

from sandbox.host.allowance import HadToWait, TookTooLong
from sandbox.host.options import SandboxOptions
from sandbox.host.pool import SandboxPool
from sandbox.host.usage import ProcessorSeconds
from sandbox.host.zygote_client import InfraError
from sandbox.program import (
    FAULT_KINDS,
    INPUT,
    RESULT,
    Binding,
    ChannelCode,
    Fault,
    Program,
    argument_names,
)

__all__ = [
    "FAULT_KINDS",
    "INPUT",
    "RESULT",
    "Binding",
    "ChannelCode",
    "Fault",
    "HadToWait",
    "InfraError",
    "ProcessorSeconds",
    "Program",
    "SandboxOptions",
    "SandboxPool",
    "Suspension",
    "TookTooLong",
    "argument_names",
]
