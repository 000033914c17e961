"""What `/metrics` tells, for tests to look up."""

from __future__ import annotations

import http.client

from prometheus_client.parser import text_string_to_metric_families


def samples(text: bytes) -> dict[str, float]:
    """Values by name and labels, such as `servioticy_program_up{program="api"}`."""
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for each in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in each.labels.items())
            found[f"{each.name}{{{labels}}}" if labels else each.name] = each.value
    return found


def get(port: int, path: str = "/metrics", method: str = "GET") -> tuple[int, bytes]:
    """Status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def scrape(port: int) -> dict[str, float]:
    """What is told at this port."""
    status, text = get(port)
    assert status == 200, text
    return samples(text)


def names(found: dict[str, float]) -> set[str]:
    """The metrics that are among the samples, those of histograms once."""
    ends = ("_bucket", "_count", "_sum")
    bare = {each.partition("{")[0] for each in found}
    return {
        next((each.removesuffix(end) for end in ends if each.endswith(end)), each) for each in bare
    }
