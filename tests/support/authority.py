"""An authority of the tests, and certificates by it, real ones: of any age."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from servioticy.doors.certificate import Certificate, Files

PEM = serialization.Encoding.PEM
DAY = timedelta(days=1)


class Authority:
    """Vouches for whom it is asked to."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self.file = folder / f"{name}.pem"
        made = self._built(self._name, self._key, DAY, is_authority=True)
        self.file.write_bytes(made.public_bytes(PEM))

    def vouch(
        self, name: str = "server", *, ends: timedelta = 30 * DAY, password: str = ""
    ) -> Files:
        """Write a certificate for this machine and its key, over those of this name."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, key_file = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        made = self._built(_named(name), key, ends)
        locked: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            locked = serialization.BestAvailableEncryption(password.encode())
        key_file.write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, locked))
        certificate.write_bytes(made.public_bytes(PEM))
        return Files(str(certificate), str(key_file), password)

    def show(self, name: str = "server", *, ends: timedelta = 30 * DAY) -> Certificate:
        """What a server shows."""
        return Certificate(self.vouch(name, ends=ends))

    def believed(self, own: Files | None = None) -> ssl.SSLContext:
        """What a client has that believes it, and shows a certificate of its own, if any."""
        context = ssl.create_default_context(cafile=str(self.file))
        if own is not None:
            context.load_cert_chain(own.certificate, own.key)
        return context

    def _built(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        ends: timedelta,
        is_authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=name,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - 10 * DAY,
            not_valid_after=now + ends,
        )
        here = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=is_authority,
            crl_sign=is_authority,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            builder.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(x509.SubjectAlternativeName(here), critical=False)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
