"""What a browser does on the way to an issuer and back: redirects one by one, with a cookie jar."""

from __future__ import annotations

from typing import Any

import httpx

from tests.processes.system import System

LOGIN = "/api/v1/auth/oidc/login"
CALLBACK = "/api/v1/auth/oidc/callback"


class Browser:
    """One person's."""

    def __init__(self, site: System) -> None:
        self.site = site
        self.http = httpx.Client(timeout=60)

    def close(self) -> None:
        self.http.close()

    def begin(self) -> str:
        """Where the scheduler sends us."""
        answer = self.http.get(self.site.url + LOGIN)
        assert answer.status_code == 302, answer.text
        assert "HttpOnly; SameSite=Lax" in answer.headers["set-cookie"]
        return answer.headers["location"]

    def consent(self, url: str, sub: str) -> str:
        """Log in at the issuer; the callback that it sends us to."""
        answer = self.http.post(url, data={"sub": sub})
        assert answer.status_code == 302, answer.text
        location: str = answer.headers["location"]
        assert location.startswith(self.site.url + CALLBACK), location
        return location

    def log_in(self, sub: str) -> httpx.Response:
        """The whole way; the answer to the callback."""
        return self.http.get(self.consent(self.begin(), sub))

    def session(self) -> Any:
        """Who is logged in; None for nobody."""
        answer = self.http.get(self.site.url + "/api/v1/auth/session")
        return answer.json() if answer.status_code == 200 else None


def refused(answer: httpx.Response, status: int, code: str) -> str:
    """The page of a refusal."""
    assert answer.status_code == status, (answer.status_code, answer.text)
    assert answer.headers["content-type"].startswith("text/html")
    assert code in answer.text
    assert "astra_session=" not in answer.headers.get("set-cookie", "")
    return answer.text
