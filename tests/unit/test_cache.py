"""What is kept while there is room."""

from __future__ import annotations

from servioticy.domain.cache import Cache


def a_cache(**sizes: int) -> Cache[str, str]:
    cache: Cache[str, str] = Cache(100)
    for key, size in sizes.items():
        cache.put(key, key.upper(), size)
    return cache


def kept(cache: Cache[str, str]) -> list[str]:
    return [key for key in "abcd" if cache.get(key) == key.upper()]


def test_all_is_kept_up_to_the_room_and_not_a_byte_more() -> None:
    assert kept(a_cache(a=50, b=50)) == ["a", "b"]
    assert kept(a_cache(a=50, b=51)) == ["b"]


def test_the_least_used_goes_first() -> None:
    cache = a_cache(a=40, b=40)
    assert cache.get("a") == "A"
    cache.put("c", "C", 40)

    assert kept(cache) == ["a", "c"]


def test_what_is_larger_than_the_room_is_not_kept() -> None:
    """Nor what it replaces; all others are."""
    cache = a_cache(a=60, b=40)
    cache.put("a", "A", 101)

    assert kept(cache) == ["b"]


def test_a_key_that_is_put_again_takes_its_new_size() -> None:
    cache = a_cache(a=90)
    cache.put("a", "A", 10)
    cache.put("b", "B", 90)

    assert kept(cache) == ["a", "b"]


def test_what_nobody_uses_is_forgotten_after_its_time_and_leaves_its_room() -> None:
    """To get it, or put it again, is a use."""
    now = [0.0]
    cache: Cache[str, str] = Cache(100, lambda: now[0])
    for each in "abc":
        cache.put(each, each.upper(), 30)
    now[0] = 5.0
    cache.get("a")
    cache.put("b", "B", 30)
    now[0] = 9.9
    assert cache.forget_unused(10.0) == 0
    now[0] = 10.0

    assert cache.forget_unused(10.0) == 1
    cache.put("d", "D", 40)
    assert kept(cache) == ["a", "b", "d"]


def test_after_clearing_there_is_room_for_all() -> None:
    cache = a_cache(a=60)
    cache.clear()
    assert kept(cache) == []
    cache.put("b", "B", 100)

    assert kept(cache) == ["b"]
