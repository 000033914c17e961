"""What procedures of workflows return: nothing, one, several, or what is none of these."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox import SandboxPool
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.workflows.programs import Made, call_of, made_of, program_of

ENTERED = 1_500_000_000_123
LONG = "'x'.repeat(33000)"
RIGHT = {
    "": [],
    "return null;": [],
    "return [];": [],
    "return atom;": [b'{"n":2}'],
    "return {twice: atom.n * 2};": [b'{"twice":4}'],
    "return [atom, {a: [1]}];": [b'{"n":2}', b'{"a":[1]}'],
    "return {at: Date.now()};": [b'{"at":1500000000123}'],
}
WRONG = {
    "return 5;": ("error", "an atom is a JSON object"),
    "return [[]];": ("error", "an atom is a JSON object"),
    "return () => 1;": ("error", "procedure: a function is not JSON"),
    f"return {{a: {LONG}}};": ("error", "an atom has at most 32768 bytes"),
    f"return [{{a: {LONG}}}, {{a: {LONG}}}];": ("error", "65536 characters together"),
    "return Array.from({length: 101}, () => ({}));": ("error", "more than 100 atoms"),
    "return {a: '\\u0000'};": ("error", "has a NUL"),
    "throw new Error('no');": ("script-error", "Error: no (procedure, line 1"),
}


def made(pool: SandboxPool, codes: Sequence[str], atom: bytes = b'{"n":2}') -> list[Made]:
    """What each code makes of the atom, all of them asked together."""
    assert pool.check_all([program_of(each) for each in codes]) == [[] for _ in codes]
    calls = [call_of("w/p@1", each, atom, ENTERED) for each in codes]
    return [made_of(each) for each in JavaScript(pool).evaluate("1.0", calls)]


def of(bodies: Sequence[str]) -> list[str]:
    return [f"function(atom) {{ {each} }}" for each in bodies]


def test_what_is_made_of_an_atom(pool: SandboxPool) -> None:
    found = made(pool, of(list(RIGHT)))

    told = {body: list(each.atoms) for body, each in zip(RIGHT, found, strict=True)}
    assert told == RIGHT
    assert {each.kind for each in found} == {""}


def test_what_is_no_atom_is_told(pool: SandboxPool) -> None:
    found = made(pool, of(list(WRONG)))

    for each, (kind, reason) in zip(found, WRONG.values(), strict=True):
        assert (list(each.atoms), each.kind) == ([], kind)
        assert reason in each.reason


def test_nothing_is_kept_from_one_atom_to_the_next(pool: SandboxPool) -> None:
    """What code leaves behind is gone."""
    code = """function(a) {
        const before = typeof kept;
        kept = 1;
        return {before, n: a.n};
    }"""

    found = made(pool, [code, code])

    assert [list(each.atoms) for each in found] == [[b'{"before":"undefined","n":2}']] * 2
