"""What procedures of workflows return: nothing, one, several, or what is none of these."""

from __future__ import annotations

import pytest

from sandbox import SandboxPool
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.workflows.programs import Made, call_of, made_of, program_of

LONG = "'x'.repeat(33000)"


def made(pool: SandboxPool, body: str, atom: bytes = b'{"n":2}') -> Made:
    code = f"function(atom) {{ {body} }}"
    assert pool.check(program_of(code)) == []
    (grown,) = JavaScript(pool).evaluate("1.0", [call_of(code, atom, 1_500)])
    return made_of(grown)


@pytest.mark.parametrize(
    ("body", "atoms"),
    [
        ("", []),
        ("return null;", []),
        ("return [];", []),
        ("return atom;", [b'{"n":2}']),
        ("return {twice: atom.n * 2};", [b'{"twice":4}']),
        ("return [atom, {a: [1]}];", [b'{"n":2}', b'{"a":[1]}']),
        ("return {at: Date.now()};", [b'{"at":1500}']),
    ],
)
def test_what_is_made_of_an_atom(pool: SandboxPool, body: str, atoms: list[bytes]) -> None:
    assert made(pool, body) == Made(atoms)


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        ("return 5;", "error", "an atom is a JSON object"),
        ("return [[]];", "error", "an atom is a JSON object"),
        ("return () => 1;", "error", "procedure: a function is not JSON"),
        (f"return {{a: {LONG}}};", "error", "an atom has at most 32768 bytes"),
        (f"return [{{a: {LONG}}}, {{a: {LONG}}}];", "error", "65536 characters together"),
        ("return Array.from({length: 101}, () => ({}));", "error", "more than 100 atoms"),
        ("return {a: '\\u0000'};", "error", "has a NUL"),
        ("throw new Error('no');", "script-error", "Error: no (procedure, line 1"),
    ],
)
def test_what_is_no_atom_is_told(pool: SandboxPool, body: str, kind: str, reason: str) -> None:
    found = made(pool, body)

    assert (list(found.atoms), found.kind) == ([], kind)
    assert reason in found.reason


def test_nothing_is_kept_from_one_atom_to_the_next(pool: SandboxPool) -> None:
    """What code leaves behind is gone."""
    code = """function(a) {
        const before = typeof kept;
        kept = 1;
        return {before, n: a.n};
    }"""
    calls = [call_of(code, b'{"n":%d}' % n, 1) for n in range(2)]

    found = [made_of(each) for each in JavaScript(pool).evaluate("1.0", calls)]

    assert [each.atoms for each in found] == [
        [b'{"before":"undefined","n":0}'],
        [b'{"before":"undefined","n":1}'],
    ]
