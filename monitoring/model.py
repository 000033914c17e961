"""The nouns of monitoring, as the paper has them: nodes, and what is measured of them."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Node(msgspec.Struct, frozen=True, rename="camel"):
    """A worker that does one task: several share a purpose, none an id."""

    node_id: str
    """the machine, the program and the process: `host/pipeline/4711`"""
    node_purpose: str
    """what it does there: of an aspect without a purpose the name of the place"""


class RuntimePerformance(msgspec.Struct, frozen=True, tag=True, rename="camel"):
    """One call of a step; times are in ns since 1970.

    An aspect before the step knows no end of it, one behind it no start: who reads them puts
    both together by purpose and sequence.
    """

    node: Node
    place: str
    """the function, with its module"""
    start: int | None
    end: int | None
    sequence: str
    """what connects the steps of one piece of work"""
    error: str = ""
    """the class of what it raised"""
    step: str = ""
    """the call's own id, in 16 hexadecimal digits"""
    parent: str = ""
    """the step of the same sequence that it is a part of; empty: none"""
    links: tuple[str, ...] = ()
    """of a call about several updates the traces of those that are sampled: trace, `-` and step"""
    for_links: bool = False
    """it is told for sampled updates that it, or the call around it, is about, not for itself: a
    part of their traces, and of no statistics over calls, in which large batches would be too many
    """
    about_others: bool = False
    """it says which updates it is about, and none of them is sampled: no trace has it, whatever
    the call around it is about
    """


class ResourceProfile(msgspec.Struct, frozen=True, tag=True, rename="camel"):
    """What one call took of the process; others' threads take of it meanwhile, too."""

    node: Node
    place: str
    start: int
    end: int
    sequence: str
    processor: int
    """ns of the processor that the calling thread took"""
    memory: int
    """bytes by which the process's resident memory has grown"""
    collections: int
    """runs of Python's garbage collection"""


class Calls(msgspec.Struct, frozen=True, tag=True, rename="camel"):
    """How often a step was called since the last time that was told, and how often it raised."""

    node: Node
    place: str
    end: int
    calls: int
    failed: int


Measurement: TypeAlias = RuntimePerformance | ResourceProfile | Calls
