"""`servioticy operator`: programs of one's own that compute composite streams."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import operators
from command import shown
from command.remote import access
from operators import archives, manifest
from operators.errors import NotAnOperator
from servioticy.errors import ServioticyError
from servioticy.settings import Settings

ACTIONS = ("new", "push", "list", "log", "remove")


class _Wrong(ServioticyError):
    """What was asked cannot be done; the message says why."""


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Do what the first word says."""
    action, *words = parsed.words
    if action not in ACTIONS:
        parsed.refuse(f"the first word is one of {', '.join(ACTIONS)}")
    if action == "new":
        return _new(Path(_only(parsed, words, "FOLDER")), parsed.language)
    if action == "list":
        return _list(parsed, settings)
    if action == "push":
        return _push(Path(_only(parsed, words, "FOLDER")), parsed, settings)
    name, version = _named(_only(parsed, words, "NAME@VERSION"))
    with access.rest(parsed, settings) as api:
        if action == "remove":
            api.remove_operator(name, version)
            return 0
        if version is None:
            raise _Wrong(f"which version: {name}@1?")
        told = api.operator(name, version)
    if parsed.json:
        shown.say_json(told)
    else:
        shown.say([line for each in told["runs"] for line in _log(each)] or ["it runs nowhere"])
    return 0


def _new(folder: Path, language: str) -> int:
    """Make a folder with a sample, and the kit that it needs."""
    if folder.exists() and any(folder.iterdir()):
        raise _Wrong(f"{folder} is not empty")
    room = Path(operators.__path__[0])
    for place in ("samples", "kits"):
        shutil.copytree(room / place / language, folder, dirs_exist_ok=True)
    shown.say([f"{folder}: {', '.join(sorted(each.name for each in folder.iterdir()))}"])
    return 0


def _push(folder: Path, parsed: argparse.Namespace, settings: Settings) -> int:
    try:
        if not folder.is_dir():
            raise NotAnOperator("there is no such folder")
        content = archives.pack(folder)
        name = archives.described(archives.unpack(content)).name
    except NotAnOperator as error:
        raise _Wrong(f"{folder}: {error}") from error
    with access.rest(parsed, settings) as api:
        told = api.push_operator(name, content)
    if parsed.json:
        shown.say_json(told)
    else:
        shown.say([f"{told['name']}@{told['version']}"])
    return 0


def _list(parsed: argparse.Namespace, settings: Settings) -> int:
    with access.rest(parsed, settings) as api:
        found = list(api.operators())
    if parsed.json:
        shown.say_json(found)
    else:
        shown.say([_line(each) for each in found] or ["no operators"])
    return 0


def _line(each: Mapping[str, Any]) -> str:
    states = ", ".join(f"{count} {state}" for state, count in sorted(each["processes"].items()))
    name = f"{each['name']}@{each['version']}"
    return f"{name:32} {each['language']:8} {each['bytes']:>9,} bytes  {states}".rstrip()


def _log(run: Mapping[str, Any]) -> list[str]:
    told = f"{run['node']}: {run['state']}, {run['restarts']} restarts"
    problem = [f"  last problem: {shown.plain(run['problem'])}"] if run["problem"] else []
    return [told, *problem, *(f"  {shown.plain(line)}" for line in run["printed"].splitlines())]


def _only(parsed: argparse.Namespace, words: list[str], what: str) -> str:
    if len(words) != 1:
        parsed.refuse(f"{parsed.words[0]} takes one word: {what}")
    return words[0]


def _named(word: str) -> tuple[str, int | None]:
    """Return the name and the version that are in `NAME@VERSION`, or in `NAME`."""
    name, _, version = word.partition("@")
    if not manifest.is_name(name) or (version and not version.isdecimal()):
        raise _Wrong(f"{word}: a name, or NAME@VERSION")
    return name, int(version) if version else None
