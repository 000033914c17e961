"""The salesman as a job of PySpark: micro-batches, computed by Spark's Python workers."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas
import salesman
from pyspark.sql import DataFrame, SparkSession

PARTS = 4
REST_SECONDS = 1.0


def extracted(frames: Iterable[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
    """From texts to nodes."""
    for frame in frames:
        found = [salesman.extract(each) for each in frame.to_dict("records")]
        yield pandas.DataFrame({"value": [json.dumps(each) for each in found]})


def shared(frames: Iterable[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
    """From nodes to parts of all paths."""
    for frame in frames:
        for each in frame["value"]:
            parts = salesman.paths(json.loads(each), PARTS)
            yield pandas.DataFrame({"value": [json.dumps(part) for part in parts]})


def measured(frames: Iterable[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
    """From a part to its shortest path."""
    for frame in frames:
        found = [salesman.distance(json.loads(each)) for each in frame["value"]]
        yield pandas.DataFrame({"value": [json.dumps(each) for each in found]})


def summed(batch: DataFrame, _number: int) -> None:
    """Tell the shortest path of each input of a batch."""
    by_input: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in batch.collect():
        found = json.loads(row.value)
        by_input[found["id"]].append(found)
    for parts in by_input.values():
        told = salesman.summarize(parts)
        print(told["id"], round(told["least"], 3), flush=True)


def main() -> None:
    """Write so many inputs, with a break between two, and take what comes of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds")
    parser.add_argument("--vertices", type=int, default=8)
    parser.add_argument("--characters", type=int, default=17_000_000)
    parser.add_argument("--until", type=Path, help="go on until there is such a file")
    chosen = parser.parse_args()
    spark = SparkSession.builder.appName("salesman").getOrCreate()
    with tempfile.TemporaryDirectory() as scratch:
        inputs = Path(scratch) / "inputs"
        inputs.mkdir()
        texts = spark.readStream.schema("id string, text string").json(str(inputs))
        steps = texts.mapInPandas(extracted, "value string").mapInPandas(shared, "value string")
        query = (
            steps.mapInPandas(measured, "value string")
            .writeStream.foreachBatch(summed)
            .option("checkpointLocation", f"{scratch}/checkpoint")
            .start()
        )
        for number in range(chosen.runs):
            given = salesman.create(f"run-{number}", chosen.vertices, chosen.characters)
            partial = Path(scratch) / "partial"
            partial.write_text(json.dumps(given), encoding="utf-8")
            partial.rename(inputs / f"{number}.json")
            time.sleep(chosen.pause)
        query.processAllAvailable()
        # As a job of streams does: it has no end of its own, and one would end its workers.
        time.sleep(REST_SECONDS)
        while chosen.until is not None and not chosen.until.exists():
            time.sleep(0.05)
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
