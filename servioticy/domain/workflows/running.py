"""What runs a procedure, beside code: what its document says of a program, and of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servioticy.domain.documents.codes import (
    BAD_NAME,
    NO_CHOICE,
    REQUIRED,
    UNKNOWN_OPERATOR,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import Part
from servioticy.domain.program_code import OPERATOR, ProgramCode
from servioticy.domain.workflows.model import CODE_MEMORIES, CODE_MEMORY

MAX_VERSION = 2**31 - 1
MAX_NAME = 63
_KEYS = ("name", "version")


def program_of(procedure: Mapping[str, Any], part: Part) -> ProgramCode | None:
    """Return the program that a procedure names; None: it has code. Raises BadDocument.

    Whether there is such a program is asked by who can.
    """
    if OPERATOR not in procedure:
        return None
    own = part.at(OPERATOR, words=OPERATOR)
    content = procedure[OPERATOR]
    if "code" in procedure:
        raise own.bad("a procedure has code or an operator, not both", NO_CHOICE)
    if not isinstance(content, dict):
        raise own.bad('is a JSON object, as {"name":"score","version":1}', WRONG_TYPE)
    for key in content:
        if key not in _KEYS:
            raise own.at(key).bad(f"has no {key[:100]!r}; there are name, version", BAD_NAME)
    name, version = content.get("name"), content.get("version")
    if not isinstance(name, str) or not name:
        raise own.at("name").bad("names a program that you have pushed", REQUIRED)
    if "/" in name:
        raise own.at("name").bad("is a program of your own, not another's", UNKNOWN_OPERATOR)
    if len(name) > MAX_NAME:
        raise own.at("name").bad(f"has at most {MAX_NAME} characters", BAD_NAME)
    if (
        not isinstance(version, int)
        or isinstance(version, bool)
        or not 1 <= version <= MAX_VERSION
    ):
        raise own.at("version").bad("is the number of a version that you have pushed", WRONG_TYPE)
    return ProgramCode(name, version)


def memory_of(procedure: Mapping[str, Any], part: Part) -> int:
    """Return how many MiB the code may have. Raises BadDocument."""
    if "memory" not in procedure:
        return CODE_MEMORY
    own = part.at("memory", words="memory")
    memory = procedure["memory"]
    if OPERATOR in procedure:
        raise own.bad("a program's operator.json says it (limits.memory)", NO_CHOICE)
    if not isinstance(memory, int) or memory not in CODE_MEMORIES:
        told = ", ".join(map(str, CODE_MEMORIES))
        raise own.bad(f"is one of {told}, in MiB", NO_CHOICE)
    return memory
