"""Callbacks are signed by Standard Webhooks."""

from __future__ import annotations

import pytest
from callback_receivers import SECRET

from delivery.callbacks.signing import signed_headers
from servioticy.domain.webhook_secrets import BadSecret, exchanged, in_force, key_of, new_secret

BAD_SECRETS = ["", "whsec_", "whsec_AAAA", "MfKQ9r8G", "whsec_*", "whsec_" + "A" * 200]


def test_the_published_vector_is_met() -> None:
    """That of the specification of Standard Webhooks."""
    body = b'{"test": 2432232314}'
    headers = signed_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, [SECRET])

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_while_a_secret_is_exchanged_both_sign() -> None:
    other = "whsec_" + "A" * 32
    signature = signed_headers("m", 1, b"{}", [SECRET, other])["webhook-signature"]

    assert [each[:3] for each in signature.split()] == ["v1,", "v1,"]
    assert len(set(signature.split())) == 2


def test_the_secret_before_is_good_for_a_day() -> None:
    day = 24 * 3_600_000
    first = exchanged([], new_secret(), 0)
    second = exchanged(first, new_secret(), 5)
    third = exchanged(second, new_secret(), 6)

    assert len(in_force(second, day)) == 2
    assert in_force(second, day + 5) == (second[0]["secret"],)
    assert in_force(third, 7) == (third[0]["secret"], second[0]["secret"])
    assert len(key_of(third[0]["secret"])) == 32


@pytest.mark.parametrize("secret", BAD_SECRETS)
def test_what_is_no_secret_signs_nothing(secret: str) -> None:
    with pytest.raises(BadSecret):
        key_of(secret)
