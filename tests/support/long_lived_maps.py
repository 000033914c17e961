"""Attributes of objects, and names of modules, that hold many things: who bounds each is asked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

KINDS = frozenset(
    [
        "dict",
        "defaultdict",
        "OrderedDict",
        "Counter",
        "deque",
        "set",
        "list",
        "bytearray",
        "LRUCache",
        "Cache",
        "WeakKeyDictionary",
        "WeakValueDictionary",
        "WeakSet",
        "Queue",
        "SimpleQueue",
    ]
)


REMEMBERING = frozenset(["cache", "functools.cache", "lru_cache(maxsize=None)", "lru_cache(None)"])


def maps(root: Path) -> Iterator[str]:
    """Yield all that a package holds, as `file:Class.attribute` or `file:name`.

    Of names of modules those that are written in small letters: others are constants. What a
    function remembers without a bound (`@cache`) is such a map, too.
    """
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        tree = ast.parse(path.read_text("utf-8"))
        for statement in tree.body:
            yield from (f"{name}:{found}" for found in _names(statement))
        for each in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
            if any(ast.unparse(d) in REMEMBERING for d in each.decorator_list):
                yield f"{name}:{each.name}"
        for each in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
            yield from (f"{name}:{each.name}.{found}" for found in _fields(each))
            for node in ast.walk(each):
                yield from (f"{name}:{each.name}.{found}" for found in _attributes(node))


def _attributes(node: ast.AST) -> Iterator[str]:
    for target in _targets(node):
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
            yield target.attr


def _fields(each: ast.ClassDef) -> Iterator[str]:
    """Yield those of a dataclass that are made with it, and empty."""
    for node in each.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            made = ast.unparse(node.value) if node.value is not None else ""
            if any(f"default_factory={kind})" in made for kind in KINDS):
                yield node.target.id


def _names(node: ast.AST) -> Iterator[str]:
    for target in _targets(node):
        if isinstance(target, ast.Name) and target.id != target.id.upper():
            yield target.id


def _targets(node: ast.AST) -> list[ast.expr]:
    """Return what is assigned to, where it holds many things."""
    if isinstance(node, ast.Assign):
        targets, says = node.targets, ""
    elif isinstance(node, ast.AnnAssign):
        targets, says = [node.target], ast.unparse(node.annotation)
    else:
        return []
    is_many = node.value is not None and _is_many(node.value)
    if is_many or any(f"{kind}[" in says for kind in KINDS):
        return targets
    return []


def _is_many(value: ast.expr) -> bool:
    if isinstance(value, (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)):
        return True
    made = value.func if isinstance(value, ast.Call) else None
    made = made.value if isinstance(made, ast.Subscript) else made
    return made is not None and ast.unparse(made).rpartition(".")[2] in KINDS
