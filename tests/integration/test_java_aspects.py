"""Aspects in a Java that knows nothing of them: the same file, the same measurements."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitoring.applications.handler import Handler
from monitoring.configuration import Aspect, NotUnderstood, Publish, parsed
from monitoring.model import Calls, Measurement, ResourceProfile, RuntimePerformance
from monitoring.publishers.every import Every, Surroundings
from monitoring.publishers.sums import Sums
from monitoring.sequences import is_sampled
from monitoring.weaving import java as woven
from servioticy.embedded import classes, jars, java
from servioticy.settings import Settings, load

PROGRAM = """
package shop;

import java.lang.management.ManagementFactory;
import javax.management.ObjectName;

public class Till {
    static int outer(int number) { return inner(number) + 1; }
    static int inner(int number) { return number * 2; }
    static int sold(java.util.Map what, String to) { return what.size(); }
    static void fails() { throw new IllegalStateException("no"); }

    public static void main(String[] words) throws Exception {
        for (int number = 0; number < 3; number++) {
            System.out.println(outer(number));
        }
        java.util.Map what = new java.util.HashMap();
        what.put("id", "pear");
        System.out.println(sold(what, "Ada"));
        try {
            fails();
        } catch (IllegalStateException expected) {
            System.out.println(expected.getMessage());
        }
        String name = "servioticy.monitoring:type=Step,name=\\"till\\"";
        if (words.length > 0) {
            System.out.println(ManagementFactory.getPlatformMBeanServer()
                .getAttribute(new ObjectName(name), "Calls"));
        }
    }
}
"""
MEASURES = ("runtime", "profile", "count")


def of(pointcut: str, **more: Any) -> Aspect:
    return Aspect(f"shop.Till.{pointcut}", language="java", **more)


@cache
def settings() -> Settings:
    return load()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled once, by the compiler that comes with Spark: there may be no other."""
    folder = tmp_path_factory.mktemp("program")
    source = folder / "Till.java"
    source.write_text(PROGRAM)
    path = f"{java.pyspark_jars()}/*"
    command = [str(java.find(settings()).executable), "-cp", path, classes.COMPILER]
    subprocess.run([*command, "-d", str(folder), str(source)], check=True, capture_output=True)
    return folder


def measured(
    program: Path,
    folder: Path,
    aspects: Sequence[Aspect],
    *words: str,
    processes: Path | None = None,
) -> tuple[list[str], list[Measurement]]:
    """What the program printed, and what was measured of it."""
    pipe, file = folder / "pipe", folder / "stored.ndjson"
    handler = Handler(pipe, Every(Publish(), Surroundings(file, Sums())))
    woven.written(folder / "java", aspects, pipe, "shop", processes)
    agent, jar = jars.aspects(settings())
    path = os.pathsep.join(map(str, (folder / "java", jar, program)))
    command = [java.find(settings()).executable, f"-javaagent:{agent}", "-cp", path]
    done = subprocess.run(
        [*command, "shop.Till", *words], capture_output=True, text=True, timeout=120
    )
    handler.close()
    assert (done.returncode, done.stderr, handler.lost) == (0, "", 0)
    text = file.read_bytes() if file.exists() else b""
    decoded = [msgspec.json.decode(each, type=Measurement) for each in text.splitlines()]
    return done.stdout.splitlines(), decoded


def test_calls_are_measured_and_do_what_they_did(program: Path, tmp_path: Path) -> None:
    """What one method calls belongs to its sequence; what it raises is raised."""
    aspects = [of("outer", purpose="till"), of("inner"), of("f*ls")]
    printed, found = measured(program, tmp_path, aspects, "and tell")
    steps = [each for each in found if isinstance(each, RuntimePerformance)]
    by_purpose = {
        name: [each for each in steps if each.node.node_purpose == name]
        for name in {each.node.node_purpose for each in steps}
    }

    assert printed == ["1", "3", "5", "1", "no", "3"]
    assert {name: len(some) for name, some in by_purpose.items()} == {
        "till": 3,
        "shop.Till.inner": 3,
        "shop.Till.f*ls": 1,
    }
    for outer, inner in zip(by_purpose["till"], by_purpose["shop.Till.inner"], strict=True):
        assert (inner.sequence, inner.parent) == (outer.sequence, outer.step)
        assert outer.start is not None and inner.start is not None
        assert outer.start <= inner.start
        assert outer.parent == ""
    assert len({each.sequence for each in by_purpose["till"]}) == 3
    (failed,) = by_purpose["shop.Till.f*ls"]
    assert (failed.error, failed.place) == ("IllegalStateException", "shop.Till.fails")
    assert {each.node.node_id.split("/")[1] for each in steps} == {"shop"}


def test_figures_come_by_jmx_and_counts_at_the_end_at_least(program: Path, tmp_path: Path) -> None:
    """What is not sampled is counted, too."""
    aspects = [
        of("outer", measures=MEASURES, purpose='a "b"\n'),
        of("fails", sample=0.0, purpose="till"),
    ]
    printed, found = measured(program, tmp_path, aspects, "and tell")
    profiles = [each for each in found if isinstance(each, ResourceProfile)]
    ours = [each for each in profiles if each.node.node_purpose == 'a "b"\n']
    jvm = [each for each in profiles if each.node.node_purpose == "jvm"]

    assert printed[-1] == "1"
    assert {each.node.node_purpose for each in found} == {'a "b"\n', "jvm"}
    assert len(ours) == 3
    assert all(each.processor >= 0 and each.collections >= 0 for each in ours)
    assert jvm
    assert jvm[0].processor > 0
    assert sum(each.calls for each in found if isinstance(each, Calls)) == 3


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ('pointcut = "a.B.c"\nsequence = "x"', "in an argument by its number"),
        ('pointcut = "a.B.c"\nadvice = "before"', "advice around methods only"),
        ('pointcut = "a.B.?"', r"Class.method, without \?"),
        ('pointcut = "main"', "Class.method"),
    ],
)
def test_what_java_has_not_is_said(rest: str, why: str) -> None:
    with pytest.raises(NotUnderstood, match=why):
        parsed(f'[[aspect]]\nlanguage = "java"\n{rest}\n'.encode())


def test_an_aspect_of_java_is_nothing_to_python(tmp_path: Path) -> None:
    """Both stand in one file."""
    aspect = of("outer", purpose=json.dumps("x"))
    woven.written(tmp_path, [Aspect("a.b"), aspect], tmp_path / "p", "n")

    text = (tmp_path / "META-INF/aop.xml").read_text()
    assert text.count("<concrete-aspect") == 1
    assert "a.b" not in text


def sequences(found: Sequence[Measurement]) -> dict[str, str]:
    """By purpose."""
    steps = [each for each in found if isinstance(each, RuntimePerformance)]
    return {each.node.node_purpose: each.sequence for each in steps}


def test_a_sequence_stands_among_the_arguments(program: Path, tmp_path: Path) -> None:
    """In keys, getters and methods; it means the same in all processes of an application.

    Where nothing stands it is the thread's, as without a word.
    """
    places = ("arg0.id", "arg1", "arg1.length", "arg1.bytes.0", "arg0.colour", "arg7")
    aspects = [of("sold", sequence=each, purpose=each) for each in places]
    printed, measurements = measured(program, tmp_path, aspects)
    found = sequences(measurements)

    assert printed == ["1", "3", "5", "1", "no"]
    assert {place: found[place] for place in places[:4]} == {
        "arg0.id": "shop:pear",
        "arg1": "shop:Ada",
        "arg1.length": "shop:3",
        "arg1.bytes.0": "shop:65",
    }
    assert {found[place] for place in places[4:]}.isdisjoint({"shop:", "shop:null"})


def test_a_part_of_all_sequences_is_the_same_part_as_in_python(
    program: Path, tmp_path: Path
) -> None:
    """Each step of a sequence says the same, in whichever language."""
    rates = [number / 10 for number in range(1, 10)]
    aspects = [
        of("sold", sequence=place, sample=rate, purpose=f"{name} {rate}")
        for place, name in (("arg0.id", "pear"), ("arg1", "Ada"))
        for rate in rates
    ]
    _, found = measured(program, tmp_path, aspects)

    assert set(sequences(found)) == {
        f"{name} {rate}"
        for name in ("pear", "Ada")
        for rate in rates
        if is_sampled(f"shop:{name}", rate)
    }
