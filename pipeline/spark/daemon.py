"""What Spark's Python workers are forked from: it has loaded what all of them need.

Spark starts it in place of `pyspark.daemon`. Where it was submitted it puts PySpark first as a
zip, which has no byte code in it: to load that takes three times as long, in each worker. What is
loaded here must start no thread: a fork has only the one that forks.
"""

from __future__ import annotations

import sys

sys.path.sort(key=lambda place: place.endswith(".zip") and "pyspark" in place)

from pyspark.daemon import manager

if __name__ == "__main__":
    from pipeline.spark import job  # noqa: F401

    manager()
