"""What stands in the files of `deploy/`, of whatever kind they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
KUBERNETES_FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted(
    each for each in (DEPLOY / "systemd").iterdir() if each.suffix in (".service", ".target")
)
EXECUTABLE = "/opt/servioticy/bin/servioticy"
OURS = re.compile(r"SERVIOTICY_\w+")

Variable = tuple[str, str | None]
"""A name, and its value where the file has one."""


def documents(file: Path) -> list[dict[str, Any]]:
    """The objects of a manifest."""
    return list(yaml.safe_load_all(file.read_text("utf-8")))


def pods() -> Iterator[dict[str, Any]]:
    """What each pod is to be."""
    for file in KUBERNETES_FILES:
        for each in documents(file):
            template = each.get("spec", {}).get("template")
            if template is not None:
                yield template["spec"]


def variables(file: Path) -> list[Variable]:
    """The variables of ours that a file sets."""
    text = file.read_text("utf-8")
    if file.suffix == ".yaml":
        found = [pair for each in documents(file) for pair in _set_in(each)]
    else:
        found = [(name, value) for name, value in re.findall(r"(SERVIOTICY_\w+)=(\S+)", text)]
    assert {name for name, _ in found} >= set(OURS.findall(re.sub(r"(?m)^\s*#.*$", "", text)))
    return found


def _set_in(tree: Any) -> Iterator[Variable]:
    if isinstance(tree, list):
        for each in tree:
            yield from _set_in(each)
    if isinstance(tree, dict):
        if OURS.fullmatch(str(tree.get("name"))):
            yield str(tree["name"]), tree.get("value")
        for name, value in tree.items():
            if OURS.fullmatch(str(name)):
                yield str(name), value
            yield from _set_in(value)


def stages() -> dict[str, dict[str, str]]:
    """The last of each kind of words of each stage of the Dockerfile, with those it stands on."""
    found: dict[str, dict[str, str]] = {}
    own: dict[str, str] = {}
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text("utf-8"))
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            own = found[name] = dict(found.get(base, {}))
        elif word.isupper():
            own[word] = rest
    return found


def units_with(program: str, folder: Path) -> list[Path]:
    """The units in another folder, with a program that is there in the place of ours."""
    made = []
    for each in UNITS:
        made.append(folder / each.name)
        made[-1].write_text(each.read_text("utf-8").replace(EXECUTABLE, program), "utf-8")
    return made
