"""The edge counts every answer, by route and status."""

from __future__ import annotations

from collections.abc import Callable

from edge_builders import Serving, everything, until


def counted(method: str, route: str, status: int) -> str:
    """The name of a sample."""
    labels = f'method="{method}",route="{route}",status="{status}"'
    return f"servioticy_http_requests_total{{{labels}}}"


def test_answers_are_counted_by_route_and_status(serve: Callable[..., Serving]) -> None:
    """Neither the address nor the method of a client becomes a label."""
    serving = serve(read_wait_seconds=0.05)
    for path, method in (
        ("/routed", "GET"),
        ("/routed?x=1", "GET"),
        ("/somebody-s/secret", "PUT"),
        ("/fail", "GET"),
        ("/waits", "GET"),
        ("/routed", "BREW"),
        ("/pages", "HEAD"),
    ):
        serving.ask(path, method=method).read()

    expected = {
        counted("GET", "/<service_object>", 200): 2,
        counted("PUT", "unknown", 200): 1,
        counted("GET", "none", 500): 1,
        counted("GET", "unknown", 200): 1,
        counted("other", "/<service_object>", 200): 1,
        counted("HEAD", "unknown", 200): 1,
    }
    until(lambda: serving.requests() == expected)
    assert sum(serving.durations().values()) == 7


def test_what_is_refused_unread_is_counted_but_took_no_time(
    serve: Callable[..., Serving],
) -> None:
    serving = serve(api_body_seconds=0.1)
    with serving.connect() as malformed, serving.connect() as halfway:
        malformed.sendall(b"nonsense\r\n\r\n")
        everything(malformed)
        halfway.sendall(b"PUT /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        everything(halfway)

    assert serving.requests() == {counted("other", "none", 400): 1, counted("PUT", "none", 408): 1}
    assert serving.durations() == {}
