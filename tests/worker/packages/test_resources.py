"""Files that a manifest names by URL: fetched over TLS, believed by their digest, placed where the manifest says."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import ssl
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.worker.packages.rig import details, left_in_staging, package, served, worker

MODEL = b"the weights of a model" * 1000

READS = """
from pathlib import Path
from astraflow_sdk import node


@node("demo.say")
def say() -> dict[str, int]:
    return {"bytes": (Path(__file__).parents[1] / "models" / "m.bin").stat().st_size}
"""


class Tls(NamedTuple):
    server: ssl.SSLContext
    client: ssl.SSLContext


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for 127.0.0.1 and a client that believes it."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36_500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "pem").write_bytes(
        pem
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "pem")
    return Tls(server, ssl.create_default_context(cadata=pem.decode()))


async def test_a_file_is_fetched_checked_and_placed(tmp_path: Path, tls: Tls) -> None:
    async with (
        served() as server,
        served(tls.server) as files,
        worker(tmp_path / "w", server, tls=tls.client) as rig,
    ):
        files.files["/m"] = MODEL
        named = {"path": "models/m.bin", "type": "download", "url": f"{files.origin}/m"}
        right = hashlib.sha256(MODEL).hexdigest()
        wrong = package(tmp_path, READS, resources=[{**named, "sha256": "0" * 64}])
        told = details(await rig.install(wrong))
        assert (told["code"], told["step"]) == ("E.PKG.INVALID", "equip")
        assert left_in_staging(rig.folder) == []
        archive = package(tmp_path, READS, resources={"files": [{**named, "sha256": right}]})
        assert (await rig.install(archive)).status == "installed"
        assert await rig.outcome("t1") == {"bytes": len(MODEL)}


async def test_a_server_that_nobody_vouches_for_is_not_believed(tmp_path: Path, tls: Tls) -> None:
    async with (
        served() as server,
        served(tls.server) as files,
        worker(tmp_path / "w", server) as rig,
    ):
        files.files["/m"] = MODEL
        file = {"path": "m", "type": "download", "url": f"{files.origin}/m", "sha256": "0" * 64}
        told = details(await rig.install(package(tmp_path, resources=[file])))
        assert (told["code"], told["step"]) == ("E.PKG.INSTALL_FAILED", "equip")
        assert "certificate" in told["message"].lower()
        assert files.asked == []
