"""A folder of documents, and what of it is not so on the platform: values and rules only.

A document has a name: its field `name`, else that of its file. Groups, and the streams that a
workflow begins or ends with, may name Service Objects of the folder, and others of the tenant, in
the place of ids.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from command.remote.naming import ID
from servioticy.client import ServiceObject
from servioticy.errors import ServioticyError

OF_THE_PLATFORM = ("id", "userId", "createdAt", "updatedAt", "data")


@dataclass(frozen=True, slots=True)
class Local:
    """A document of the folder, with its name in it."""

    name: str
    file: Path
    document: dict[str, Any]

    def refers_to(self) -> frozenset[str]:
        """Return the names in its groups; ids are none."""
        return frozenset(each for each in _members(self.document) if not ID.fullmatch(each))

    @property
    def is_workflow(self) -> bool:
        """Whether it is one: no Service Object has procedures."""
        return "procedures" in self.document


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done with one document: made, where `found` is None, or changed."""

    local: Local
    found: ServiceObject | None
    difference: str

    def needed(self) -> bool:
        """Tell whether anything has to be done."""
        return bool(self.difference)


def read_folder(folder: Path) -> list[Local]:
    """Return the documents of all files `*.json` of a folder. Raises ServioticyError."""
    if not folder.is_dir():
        raise ServioticyError(f"{folder} is no folder")
    found: dict[str, Local] = {}
    for file in sorted(folder.glob("*.json")):
        local = read_file(file)
        if local.name in found:
            raise ServioticyError(f"{file} and {found[local.name].file} have one name")
        found[local.name] = local
    if not found:
        raise ServioticyError(f"{folder} has no file *.json")
    return list(found.values())


def plan(
    locals_: Sequence[Local], found: Mapping[str, ServiceObject], ids: Mapping[str, str]
) -> list[Step]:
    """Return a step for each document, those that others refer to before these.

    `found` are the documents of these names on the platform, `ids` those of all names there.
    Raises ServioticyError where a name means nothing, or documents refer to each other in a
    circle: the first of them could not be made.
    """
    own = {each.name: each for each in locals_}
    for each in locals_:
        if workflows := sorted(each.refers_to() & {o.name for o in locals_ if o.is_workflow}):
            raise ServioticyError(f"{each.file}: {workflows[0]!r} is no Service Object")
        if unknown := sorted(each.refers_to() - own.keys() - ids.keys()):
            raise ServioticyError(
                f"{each.file}: neither a document here nor one Service Object of yours has the "
                f"name {', '.join(map(repr, unknown))}"
            )
    names = {id_: name for name, id_ in ids.items()}
    return [
        Step(own[name], found.get(name), _difference(own[name], found.get(name), names))
        for name in _ordered(own)
    ]


def resolved(document: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """Return a document with ids in the place of names."""
    return _renamed(document, ids)


def _ordered(own: Mapping[str, Local]) -> Iterator[str]:
    graph = {name: sorted(each.refers_to() & own.keys()) for name, each in own.items()}
    try:
        yield from TopologicalSorter(graph).static_order()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise ServioticyError(f"documents refer to each other in a circle: {circle}") from error


def _difference(local: Local, found: ServiceObject | None, names: Mapping[str, str]) -> str:
    """Return how the platform's document becomes that of the folder, as `diff -u` writes it."""
    before = "" if found is None else _written(found.document, names)
    after = _written(local.document, names)
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        "/dev/null" if found is None else f"{local.name} ({found.id})",
        str(local.file),
    )
    return "".join(lines)


def _written(document: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return a document for people, and to compare it: without what the platform adds.

    The order of streams counts, that of the document's own fields does not.
    """
    compared = {name: each for name, each in document.items() if name not in OF_THE_PLATFORM}
    public = compared.pop("public", False) in (True, "true")
    named = _renamed(dict(sorted(compared.items())) | ({"public": True} if public else {}), names)
    return json.dumps(named, indent=2, ensure_ascii=False) + "\n"


def _renamed(document: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    renamed = dict(document)
    groups = document.get("groups")
    if isinstance(groups, dict):
        renamed["groups"] = {name: _renamed_group(each, names) for name, each in groups.items()}
    for end, stream in _streams(document):
        id_ = stream["serviceObject"]
        named = {**stream, "serviceObject": names.get(id_, id_)}
        renamed[end] = {**document[end], "stream": named}
    return renamed


def _streams(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ends of a workflow that are streams of Service Objects, each with its stream."""
    if "procedures" not in document:
        return
    for end in ("source", "sink"):
        stream = document[end].get("stream") if isinstance(document.get(end), dict) else None
        if isinstance(stream, dict) and isinstance(stream.get("serviceObject"), str):
            yield end, stream


def _renamed_group(group: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(group, dict) or not isinstance(group.get("soIds"), list):
        return group
    members = [names.get(each, each) if isinstance(each, str) else each for each in group["soIds"]]
    return {**group, "soIds": members}


def _members(document: Mapping[str, Any]) -> Iterator[str]:
    yield from (stream["serviceObject"] for _, stream in _streams(document))
    groups = document.get("groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        members = group.get("soIds") if isinstance(group, dict) else None
        if isinstance(members, list):
            yield from (each for each in members if isinstance(each, str))


def read_file(file: Path) -> Local:
    """Return the document of a file, under its name. Raises ServioticyError."""
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ServioticyError(f"{file} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ServioticyError(f"{file} is no JSON object")
    name = document.get("name") or file.stem
    if not isinstance(name, str):
        raise ServioticyError(f"{file}: its name is no text")
    return Local(name, file, {**document, "name": name})
