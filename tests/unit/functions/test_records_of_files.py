"""Files are cut the same however long the portions are; what is no atom is told with its place."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.files import records
from functions.files.records import Bad, BadFile, Portion, csv_rows, json_lines

Cutting = Callable[[bytes, int, bool, Any], Portion]


def cut(whole: bytes, cutting: Cutting, chunk: int, header: Any = None) -> tuple[list[Any], Any]:
    """All atoms and all bad records, cut by so many bytes at a time."""
    atoms: list[Any] = []
    bad: list[Bad] = []
    at: int | None = 0
    portions = 0
    while at is not None:
        part = whole[at : at + chunk]
        found = cutting(part, at, at + len(part) >= len(whole), header)
        assert found.at is None or found.at > at
        atoms += map(orjson.loads, found.atoms)
        bad += found.bad
        at, header = found.at, found.header
        portions += 1
        assert portions <= len(whole) + 1
    return atoms, bad


def as_lines(chunk: bytes, at: int, is_end: bool, _header: Any) -> Portion:
    return json_lines(chunk, at, is_end, most=3)


def as_csv(chunk: bytes, at: int, is_end: bool, header: Any) -> Portion:
    return csv_rows(chunk, at, is_end, ";", header, most=3)


texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), max_size=8)


@given(
    st.lists(st.dictionaries(texts, texts | st.integers(-5, 5), max_size=3)), st.integers(400, 600)
)
def test_lines_are_cut_the_same_by_any_portions(rows: list[Any], chunk: int) -> None:
    whole = b"".join(orjson.dumps(each) + b"\n" for each in rows)

    assert cut(whole, as_lines, max(chunk, len(whole) // 5)) == (rows, [])


@given(st.lists(st.lists(texts, min_size=2, max_size=2), max_size=12), st.integers(400, 600))
def test_rows_are_cut_the_same_by_any_portions(rows: list[list[str]], chunk: int) -> None:
    """Whatever is quoted, separators and ends of lines too."""
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL).writerows([["a", "b;"], *rows])
    whole = file.getvalue().encode()

    expected = [{"a": left, "b;": right} for left, right in rows]
    assert cut(whole, as_csv, max(chunk, len(whole) // 5)) == (expected, [])


def test_a_last_line_needs_no_end() -> None:
    assert cut(b'{"n":1}\n\n{"n":2}', as_lines, 99) == ([{"n": 1}, {"n": 2}], [])
    assert cut(b"a\r\n1\r\n2", as_csv, 99) == ([{"a": "1"}, {"a": "2"}], [])
    assert cut(b"", as_lines, 99) == ([], [])
    assert cut(b"", as_csv, 99) == ([], [])


def test_a_mark_of_the_order_of_bytes_is_no_part_of_anything() -> None:
    assert cut(b'\xef\xbb\xbf{"n":1}\n', as_lines, 99) == ([{"n": 1}], [])
    assert cut(b"\xef\xbb\xbfn\n1\n", as_csv, 99) == ([{"n": "1"}], [])


def test_what_is_no_atom_is_told_with_its_place_and_the_others_come() -> None:
    large = orjson.dumps({"n": "x" * 40_000})
    lines = [b'{"n":1}', b"[1]", b"{", b'{"n":"\\u0000"}', large, b'{"n":"\xff"}', b'{"n":2}']

    atoms, bad = cut(b"\n".join(lines), as_lines, 100_000)

    assert atoms == [{"n": 1}, {"n": 2}]
    places = [sum(len(each) + 1 for each in lines[:n]) for n in range(1, 6)]
    assert [each.at for each in bad] == places
    assert bad[0].reason == "an atom is a JSON object"
    assert bad[1].reason.startswith("the line is not JSON")


def test_a_row_with_other_cells_than_names_is_no_atom() -> None:
    whole = b'a;b\n1;2\n3\n"x"y;4\n\xff;5\n6;7\n'

    atoms, bad = cut(whole, as_csv, 99)

    assert atoms == [{"a": "1", "b": "2"}, {"a": "6", "b": "7"}]
    assert [each.at for each in bad] == [8, 10, 17]
    assert bad[0].reason == "there are 2 names in the first line, and 1 cells here"
    assert bad[1].reason.startswith("it is not CSV")
    assert bad[2].reason == "it is not in UTF-8"


@pytest.mark.parametrize("whole", [b"a;a\n1;2\n", b"\n1\n", b"\xff\n1\n", b";".join([b"a"] * 600)])
def test_a_first_line_that_names_no_columns_ends_the_file(whole: bytes) -> None:
    with pytest.raises(BadFile, match="first line"):
        cut(whole, as_csv, 9_999)


@pytest.mark.parametrize(
    ("size", "fits"), [(records.MAX_RECORD, True), (records.MAX_RECORD + 1, False)]
)
def test_a_record_has_so_many_bytes_and_no_more(size: int, fits: bool) -> None:
    """To the byte, with the end of its line: a longer one ends the file, whatever follows."""
    line = b" " * (size - len(b'{"n":1}\n')) + b'{"n":1}\n'
    if fits:
        assert cut(line * 2, as_lines, len(line) + 9)[0] == [{"n": 1}] * 2
    else:
        with pytest.raises(BadFile, match="65536"):
            cut(line * 2, as_lines, len(line) + 9)


def test_a_quote_that_never_ends_ends_the_file() -> None:
    whole = b'a\n1\n"' + b"x\n" * 70_000

    with pytest.raises(BadFile, match="65536"):
        cut(whole, as_csv, 100_000)


def test_a_portion_has_so_many_bytes_of_atoms(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the names of columns are: each row has them all."""
    monkeypatch.setattr(records, "MOST_BYTES", 1_000)
    whole = b"n" * 300 + b"\n" + b"1\n" * 50

    found = csv_rows(whole, 0, True, ";", None)

    assert len(found.atoms) == 4
    assert found.at == 301 + 8


@pytest.mark.parametrize("levels", [100, 300, 1_000, 2_000])
def test_however_deep_a_line_is_the_others_come(levels: int) -> None:
    """What can be read may be too deep to be written."""
    deep = b'{"n":' + b"[" * levels + b"]" * levels + b"}"

    atoms, bad = cut(b'{"n":1}\n' + deep + b'\n{"n":2}', as_lines, 99_999)

    assert [each["n"] for each in atoms if isinstance(each["n"], int)] == [1, 2]
    assert len(atoms) + len(bad) == 3
    assert [each.at for each in bad] == ([8] if levels > 254 else [])


def test_what_stands_before_a_record_that_is_too_long_comes() -> None:
    """And the portion after it begins with that, and ends the file."""
    long = b" " * records.MAX_RECORD + b"x\n"
    lines = json_lines(b'{"n":1}\n\n' + long, 0, True)
    rows = csv_rows(b"n\n1\n" + long, 0, True, ";", None)

    assert (lines.atoms, lines.at) == ([b'{"n":1}'], 9)
    assert (rows.atoms, rows.at, rows.header) == ([b'{"n":"1"}'], 4, ["n"])
    with pytest.raises(BadFile, match="at byte 9"):
        json_lines(long, 9, True)
    with pytest.raises(BadFile, match="at byte 4"):
        csv_rows(long, 4, True, ";", ["n"])
