"""Keys of issuers, and what they have signed; the only importer of joserfc.

What a token says of itself chooses among the keys that its issuer has published, and nothing
else: keys and addresses of keys in its header (`jwk`, `jku`, `x5u`, `x5c`) are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey, import_key
from joserfc.jws import CompactSignature, JWSRegistry

from servioticy.identity.errors import NotAccepted

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Those with a public key: who can verify cannot sign."""
MAX_KEYS = 100
MAX_KEY_ID = 500
RSA_BITS = (2_048, 8_192)


ODD = (
    *(JoseError, ValueError, TypeError, LookupError, AttributeError, AssertionError),
    *(ArithmeticError, RecursionError, UnsupportedAlgorithm),
)
"""What the libraries make of what anybody may send."""


class _Registry(JWSRegistry):
    """Refuses other algorithms and unknown critical headers; other headers are not looked at."""

    max_header_length = 2_048
    max_payload_length = 8_192
    max_signature_length = 1_400

    def __init__(self) -> None:
        super().__init__(algorithms=ALGORITHMS, strict_check_header=False)

    def get_alg(self, name: str) -> Any:
        """Return one of ours: EdDSA is one, though it has two newer names (RFC 9864)."""
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]


class PublicKey(NamedTuple):
    """A key that an issuer has published, and what it calls it."""

    id: str | None
    key: Key


class Signed(NamedTuple):
    """A token taken apart; nothing of it is verified."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    whole: CompactSignature

    @property
    def key_id(self) -> str | None:
        """How its issuer calls the key that has signed it."""
        found = self.header.get("kid")
        return found if isinstance(found, str) else None


def take_apart(token: str) -> Signed:
    """Return the parts of a token in the compact form. Raises NotAccepted."""
    try:
        whole = jws.extract_compact(token.encode(), registry=_REGISTRY)
        header = whole.headers()
        claims = orjson.loads(whole.payload or b"")
        _REGISTRY.check_header(header)
        _REGISTRY.get_alg(header["alg"])
    except ODD as error:
        raise NotAccepted("it is not a token with a signature that can be verified") from error
    if not isinstance(claims, dict):
        raise NotAccepted("it claims nothing")
    return Signed(header, claims, whole)


def is_signed_by(token: Signed, keys: Sequence[PublicKey]) -> bool:
    """Tell whether one of these keys has signed it, with the algorithm that the token names."""
    return any(_verifies(token, each.key) for each in keys)


def _verifies(token: Signed, key: Key) -> bool:
    try:
        key.check_use("sig")
        key.check_alg(token.header["alg"])
        return jws.validate_compact(token.whole, key, registry=_REGISTRY)
    except ODD:  # of another type, for another use, or the signature is none
        return False


def read_keys(document: object) -> list[PublicKey]:
    """Return the keys of a JSON Web Key Set that can verify. Raises ValueError."""
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or len(keys) > MAX_KEYS:
        raise ValueError(f"it is no JSON Web Key Set of at most {MAX_KEYS} keys")
    return list(_usable(keys))


def _usable(keys: Sequence[object]) -> Iterator[PublicKey]:
    """Yield those that can verify; what is odd about one is no reason to do without others."""
    for each in keys:
        if not isinstance(each, dict) or each.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        key_id = each.get("kid")
        is_name = key_id is None or (isinstance(key_id, str) and len(key_id) <= MAX_KEY_ID)
        key = _imported(each) if is_name else None
        if key is not None and not key.is_private and _is_strong(key):
            yield PublicKey(key_id, key)


def _imported(numbers: dict[str, Any]) -> Key | None:
    try:
        return import_key(numbers)
    except ODD:
        return None


def _is_strong(key: Key) -> bool:
    """Tell whether what it has signed can be believed, and verified in a short time."""
    if isinstance(key, RSAKey):
        least, most = RSA_BITS
        return least <= key.public_key.key_size <= most
    return isinstance(key, (ECKey, OKPKey))


_REGISTRY = _Registry()
