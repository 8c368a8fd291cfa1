"""mTLS (PROTOCOL §6): the right certificate is let in, all others are not, over a real TLS socket."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from astraflow.core.security.certificates import PeerCertificate
from astraflow.tls.contexts import ServerTls, peer_certificate
from tests.definitions import node, workflow
from tests.processes.command_line import astra, up
from tests.processes.process import Process
from tests.processes.rest import TOKEN
from tests.processes.system import System
from tests.processes.waiting import until
from tests.rawsocket import TEXT, RawSocket, frame, hello


def ca(folder: Path, *arguments: str) -> None:
    done = astra("ca", *arguments, cwd=folder)
    assert done.code == 0, done.err


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authorities; certificates of the scheduler and of workers."""
    folder = tmp_path_factory.mktemp("pki")
    ca(folder, "init")
    ca(folder, "server", "127.0.0.1", "localhost")
    ca(folder, "worker", "w-1")
    ca(folder, "worker", "w-2")
    ca(folder, "worker", "w-other", "--tenant", "umbrella")
    ca(folder, "init", "--dir", "elsewhere")
    ca(folder, "worker", "w-1", "--dir", "elsewhere")
    (folder / "expired").mkdir()
    # The command makes none that has run out.
    shutil.copy(folder / "ca" / "w-1.key", folder / "expired" / "w-1.key")
    request = ["openssl", "req", "-new", "-key", "expired/w-1.key", "-subj", "/O=default/CN=w-1"]
    sign = ["openssl", "x509", "-req", "-CA", "ca/ca.pem", "-CAkey", "ca/ca.key", "-days", "-1"]
    made = subprocess.run(request, cwd=folder, capture_output=True, check=True)
    signed = subprocess.run(sign, cwd=folder, input=made.stdout, capture_output=True, check=True)
    (folder / "expired" / "w-1.pem").write_bytes(signed.stdout)
    return folder


def environ(pki: Path, worker_auth: str) -> dict[str, str]:
    return {
        "ASTRA_SCHEDULER_TLS_CERT_FILE": str(pki / "ca" / "server.pem"),
        "ASTRA_SCHEDULER_TLS_KEY_FILE": str(pki / "ca" / "server.key"),
        "ASTRA_SCHEDULER_TLS_CLIENT_CA_FILE": str(pki / "ca" / "ca.pem"),
        "ASTRA_SCHEDULER_WORKER_AUTH": worker_auth,
        "ASTRA_WORKER_TLS_CA_FILE": str(pki / "ca" / "ca.pem"),
        "SSL_CERT_FILE": str(pki / "ca" / "ca.pem"),
    }


class TlsSystem(System):
    """A scheduler that speaks HTTPS."""

    def __init__(
        self, folder: Path, pki: Path, worker_auth: str, client_ca: Path | None = None
    ) -> None:
        given = environ(pki, worker_auth)
        if client_ca is not None:
            given["ASTRA_SCHEDULER_TLS_CLIENT_CA_FILE"] = str(client_ca)
        super().__init__(folder, environ=given)
        self.rest.close()
        context = ssl.create_default_context(cafile=pki / "ca" / "ca.pem")
        self.rest.http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=60,
            verify=context,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@contextmanager
def running_tls(
    folder: Path, pki: Path, worker_auth: str, client_ca: Path | None = None
) -> Iterator[TlsSystem]:
    system = TlsSystem(folder, pki, worker_auth, client_ca)
    try:
        system.start()
        yield system
        system.stop()
    finally:
        system.close()


@pytest.fixture(scope="module", params=["any", "mtls"])
def system(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pki: Path
) -> Iterator[TlsSystem]:
    with running_tls(tmp_path_factory.mktemp("tls"), pki, request.param) as system:
        yield system


def context_of(pki: Path, pair: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=pki / "ca" / "ca.pem")
    if pair is not None:
        context.load_cert_chain(pair.with_suffix(".pem"), pair.with_suffix(".key"))
    return context


async def greeted(
    port: int, context: ssl.SSLContext, worker: str, auth: dict[str, Any], tenant: str = "default"
) -> dict[str, Any]:
    """The first frame that a handshake is answered with."""
    peer = await RawSocket.open(port, tls=context)
    try:
        payload = {**hello(worker, TOKEN), "auth": auth}
        peer.send(frame(worker, "control.handshake", payload, tenant=tenant, ack={"request": True}))
        kind, raw = await peer.receive()
        assert kind == TEXT
        answer: dict[str, Any] = json.loads(raw)
        return answer
    finally:
        await peer.close()


def fingerprint(pem: Path) -> str:
    shown = subprocess.run(
        ["openssl", "x509", "-in", str(pem), "-noout", "-fingerprint", "-sha256"],
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.strip().partition("=")[2]


MTLS = {"mode": "mtls"}


class TestHandshakes:
    async def test_the_right_certificate_is_let_in(self, system: TlsSystem, pki: Path) -> None:
        pair = pki / "ca" / "w-1"
        told = {**MTLS, "fingerprint": fingerprint(pair.with_suffix(".pem"))}
        for auth in (MTLS, told):
            answer = await greeted(system.port, context_of(pki, pair), "w-1", auth)
            assert answer["type"] == "control.ack", answer

    @pytest.mark.parametrize("folder", ["elsewhere", "expired"])
    async def test_tls_itself_refuses_a_wrong_authority_and_what_has_run_out(
        self, system: TlsSystem, pki: Path, folder: str
    ) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await greeted(system.port, context_of(pki, pki / folder / "w-1"), "w-1", MTLS)

    async def test_another_tenant_another_worker_and_a_wrong_fingerprint(
        self, system: TlsSystem, pki: Path
    ) -> None:
        first, other = pki / "ca" / "w-1", pki / "ca" / "w-other"
        wrong = {**MTLS, "fingerprint": fingerprint(pki / "ca" / "w-2.pem")}
        for pair, worker, auth, tenant in (
            (other, "w-other", MTLS, "default"),
            (first, "w-1", MTLS, "umbrella"),
            (first, "w-2", MTLS, "default"),
            (first, "w-1", wrong, "default"),
        ):
            answer = await greeted(system.port, context_of(pki, pair), worker, auth, tenant)
            assert answer["type"] == "control.reset", answer
            assert answer["payload"]["code"] == "E.AUTH.INVALID_TOKEN"

    async def test_a_fingerprint_alone_proves_nothing(self, system: TlsSystem, pki: Path) -> None:
        told = {**MTLS, "fingerprint": fingerprint(pki / "ca" / "w-1.pem")}
        answer = await greeted(system.port, context_of(pki, None), "w-1", told)
        assert answer["payload"]["code"] == "E.AUTH.MTLS_REQUIRED"

    async def test_a_token(self, system: TlsSystem, pki: Path) -> None:
        auth = {"mode": "token", "token": TOKEN}
        for pair in (None, pki / "ca" / "w-2"):
            answer = await greeted(system.port, context_of(pki, pair), "by-token", auth)
            if system.environ["ASTRA_SCHEDULER_WORKER_AUTH"] == "mtls":
                assert answer["payload"]["code"] == "E.AUTH.MTLS_REQUIRED"
            else:
                assert answer["type"] == "control.ack"

    def test_the_api_needs_no_certificate_and_plain_http_is_not_spoken(
        self, system: TlsSystem
    ) -> None:
        assert system.rest.status("/readyz") == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{system.port}/healthz")


def new_worker(system: TlsSystem, pki: Path, name: str) -> Process:
    worker = system.new_worker(
        name,
        url=f"wss://127.0.0.1:{system.port}/ws/worker",
        ASTRA_WORKER_AUTH_MODE="mtls",
        ASTRA_WORKER_TLS_CERT_FILE=str(pki / "ca" / f"{name}.pem"),
        ASTRA_WORKER_TLS_KEY_FILE=str(pki / "ca" / f"{name}.key"),
    )
    del worker.environ["ASTRA_WORKER_AUTH_TOKEN"]  # type: ignore[attr-defined]
    return worker


def test_our_worker_runs_with_its_certificate_alone(tmp_path: Path, pki: Path) -> None:
    ca(pki, "worker", "w-3")
    with running_tls(tmp_path, pki, "mtls") as system:
        _run_with_certificate(system, pki)


def _run_with_certificate(system: TlsSystem, pki: Path) -> None:
    new_worker(system, pki, "w-3").start()
    system.until(lambda: [one for one in system.rest.online() if one["workerId"] == "w-3"])
    run = system.rest.run(workflow(node("core.file", parameters={"name": "a", "text": "hello"})))
    assert run["status"] == "succeeded", run
    artifact = run["artifacts"][0]["resourceId"]
    # The worker uploads over TLS, and the download comes over TLS.
    got = system.rest.http.get(f"/api/v1/artifacts/{artifact}")
    assert got.text == "hello"
    ca(pki, "worker", "w-3")  # renewed: used at the next connection
    system.restart()
    system.until(lambda: [one for one in system.rest.online() if one["workerId"] == "w-3"])


def test_a_folder_belongs_to_one_certificate(system: TlsSystem, pki: Path) -> None:
    ca(pki, "worker", "w-4")
    first = new_worker(system, pki, "w-4")
    first.start()
    system.until(lambda: [one for one in system.rest.online() if one["workerId"] == "w-4"])
    first.close()
    first.environ = {
        **first.environ,
        "ASTRA_WORKER_TLS_CERT_FILE": str(pki / "ca" / "w-1.pem"),
        "ASTRA_WORKER_TLS_KEY_FILE": str(pki / "ca" / "w-1.key"),
    }
    first.start()
    assert first.wait() == 2
    assert "the certificate names w-1" in first.said()


def test_a_renewed_certificate_of_the_scheduler_needs_no_restart(
    system: TlsSystem, pki: Path
) -> None:
    def served() -> bytes:
        context = context_of(pki, None)
        with (
            socket.create_connection(("127.0.0.1", system.port), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as peer,
        ):
            return peer.getpeercert(binary_form=True) or b""

    before = served()
    ca(pki, "server", "127.0.0.1", "localhost")
    until(lambda: served() != before, "the renewed certificate")


def test_an_authority_is_replaced_without_a_restart(tmp_path: Path, pki: Path) -> None:
    """A worker of the new one is let in, then one of the old one is not any more; the listener never stops."""
    trusted = tmp_path / "trusted.pem"
    old, new = (pki / name / "ca.pem" for name in ("ca", "elsewhere"))
    of_old, of_new = (pki / name / "w-1" for name in ("ca", "elsewhere"))
    trusted.write_bytes(old.read_bytes())
    with running_tls(tmp_path / "site", pki, "mtls", trusted) as system:

        def let_in(pair: Path) -> bool:
            """Whether the listener answers to this certificate at all."""
            request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            try:
                with (
                    socket.create_connection(("127.0.0.1", system.port), timeout=10) as plain,
                    context_of(pki, pair).wrap_socket(plain, server_hostname="127.0.0.1") as peer,
                ):
                    peer.sendall(request)
                    return peer.recv(12) == b"HTTP/1.1 200"
            except (ssl.SSLError, ConnectionError):
                return False

        assert (let_in(of_old), let_in(of_new)) == (True, False)
        trusted.write_bytes(old.read_bytes() + new.read_bytes())
        system.until(lambda: let_in(of_new), "the new authority")
        assert let_in(of_old)
        trusted.write_text("no certificate")  # left as it was
        system.until(lambda: "could not be read again" in system.scheduler.said(), "a warning")
        assert (let_in(of_old), let_in(of_new)) == (True, True)
        trusted.write_bytes(new.read_bytes())
        system.until(lambda: not let_in(of_old), "the end of the old authority")
        assert let_in(of_new)


def test_a_certificate_of_an_earlier_tls_session_is_none(pki: Path) -> None:
    """It was verified by the authorities of then."""
    folder = pki / "ca"
    tls = ServerTls(folder / "server.pem", folder / "server.key", folder / "ca.pem")
    client = context_of(pki, folder / "w-1")
    client.maximum_version = (
        ssl.TLSVersion.TLSv1_2
    )  # its session is known when the handshake is over
    found: list[PeerCertificate | None] = []
    session = None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(2):
            serving = threading.Thread(target=_serve_one, args=(listener, tls.context, found))
            serving.start()
            with (
                socket.create_connection(listener.getsockname(), timeout=10) as plain,
                client.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as peer,
            ):
                assert peer.recv(1) == b"x"
                session = peer.session
            serving.join()
    first, again = found
    assert first is not None and (first.tenant, first.worker_id) == ("default", "w-1")
    assert again is None


def _serve_one(
    listener: socket.socket, context: ssl.SSLContext, found: list[PeerCertificate | None]
) -> None:
    plain, _ = listener.accept()
    with plain, context.wrap_socket(plain, server_side=True) as peer:
        found.append(peer_certificate(peer))
        peer.send(b"x")


def test_astra_up_with_tls(tmp_path: Path, pki: Path) -> None:
    trusted = {"SSL_CERT_FILE": str(pki / "ca" / "ca.pem")}
    with up(tmp_path, **environ(pki, "any")) as server:
        assert server.url.startswith("https://")
        (tmp_path / "one.json").write_text(json.dumps(workflow(node("core.noop"))))
        done = server.astra("run", "one.json", **trusted)
        assert done.code == 0, done.err
