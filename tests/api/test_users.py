"""Users, logins and sessions of browsers over HTTP, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher

from astraflow.core import errors
from astraflow.core.security.policy import Role
from astraflow.scheduler.logins import USER_BURST
from tests.api.rig import OTHER, WAIT_S, Rig, problem_of, serving
from tests.api.scripted import token_of
from tests.api.test_events import following
from tests.api.test_tokens import bearer, create, listed

USERS = "/api/v1/users"
AUTH = "/api/v1/auth"
PASSWORD = "correct horse battery"
COOKIE = "astra_session"


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As real ones, with the least work that Argon2 takes."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr("astraflow.scheduler.passwords.PasswordHasher", lambda: cheap)
    yield


async def make_user(rig: Rig, name: str = "alice", role: str = "operator", **query: str) -> Any:
    body = {"name": name, "password": PASSWORD, "role": role}
    answer = await rig.post(USERS, json=body, params=query)
    assert answer.status_code == 201, answer.text
    return answer.json()


class Browser:
    """A client that keeps cookies, as a browser does."""

    def __init__(self, rig: Rig) -> None:
        self.http = httpx.AsyncClient(
            base_url=rig.client.base_url,
            trust_env=False,
            verify=False,
            timeout=WAIT_S,
            limits=httpx.Limits(max_keepalive_connections=0),  # nothing to close afterwards
        )
        self.csrf = ""

    async def login(self, user: str = "alice", password: str = PASSWORD, **more: Any) -> Any:
        body = {"user": user, "password": password, **more}
        return self._keep(await self.http.post(f"{AUTH}/login", json=body))

    async def redeem(self, code: str) -> Any:
        return self._keep(await self.http.post(f"{AUTH}/link", json={"code": code}))

    def _keep(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            self.csrf = answer.json()["csrfToken"]
        return answer

    async def post(self, path: str, **more: Any) -> httpx.Response:
        headers = {"x-csrf-token": self.csrf, **more.pop("headers", {})}
        return await self.http.post(path, headers=headers, **more)

    async def session(self) -> int:
        return (await self.http.get(f"{AUTH}/session")).status_code


async def test_a_user_logs_in_and_out() -> None:
    async with serving() as rig:
        made = await make_user(rig)
        assert (made["name"], made["role"], made["disabled"]) == ("alice", "operator", False)
        browser = Browser(rig)
        answer = await browser.login(" Alice ")
        assert answer.status_code == 200, answer.text
        cookie = answer.headers["set-cookie"]
        for attribute in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=604800"):
            assert attribute in cookie.split("; ")
        assert "Secure" not in cookie
        assert browser.http.cookies[COOKIE] not in answer.text
        shown = (await browser.http.get(f"{AUTH}/session")).json()
        assert shown == {**answer.json()}
        assert (await browser.http.get("/api/v1/runs")).status_code == 200
        assert (await browser.post(f"{AUTH}/logout")).status_code == 204
        assert COOKIE not in browser.http.cookies
        audited = [one["action"] for one in (await rig.get("/api/v1/audit")).json()["items"]]
        assert audited[:3] == ["logout", "login", "user.create"]


async def test_a_cookie_over_tls_is_secure() -> None:
    async with serving(public_url="https://flow.example") as rig:
        await make_user(rig)
        answer = await Browser(rig).login()
        assert "Secure" in answer.headers["set-cookie"].split("; ")


@pytest.mark.parametrize(
    "given",
    [
        {"password": "wrong horse battery"},
        {"user": "nobody"},
        {"tenant": OTHER},
        {"tenant": "nowhere"},
        {"user": ""},
        {"password": ""},
        {"user": "a\ud800b".encode("utf-8", "replace").decode()},
        {"user": "alice\u0000"},
    ],
)
async def test_who_is_not_let_in_gets_one_answer(given: dict[str, str]) -> None:
    async with serving() as rig:
        await make_user(rig)
        body = {"user": "alice", "password": PASSWORD, **given}
        for path in ("login", "token"):
            answer = await rig.post(f"{AUTH}/{path}", json=body)
            problem = problem_of(answer, 401, "E.AUTH.BAD_LOGIN")
            assert problem["detail"] == problem["title"]
            assert "set-cookie" not in answer.headers


async def test_a_disabled_user_is_refused_like_an_unknown_one() -> None:
    async with serving() as rig:
        await make_user(rig)
        await rig.client.patch(f"{USERS}/alice", json={"disabled": True})
        refused = await Browser(rig).login()
        unknown = await Browser(rig).login("bob")
        assert refused.content == unknown.content
        await rig.client.patch(f"{USERS}/alice", json={"disabled": False})
        assert (await Browser(rig).login()).is_success


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-csrf-token": ""},
        {"x-csrf-token": "guessed"},
        {"x-csrf-token": "good", "origin": "https://evil.example"},
        {"x-csrf-token": "good", "origin": "null"},
        {"x-csrf-token": "good", "origin": "http://[half"},
        {"x-csrf-token": "good", "sec-fetch-site": "cross-site"},
    ],
)
async def test_what_a_browser_changes_needs_the_csrf_token_and_a_page_of_ours(
    headers: dict[str, str],
) -> None:
    async with serving() as rig:
        await make_user(rig)
        browser = Browser(rig)
        await browser.login()
        if headers.get("x-csrf-token") == "good":
            headers = {**headers, "x-csrf-token": browser.csrf}
        answer = await browser.http.post("/api/v1/tokens", json={}, headers=headers)
        problem_of(answer, 403, "E.AUTH.CSRF")
        own = {"origin": f"http://127.0.0.1:{rig.port}"}
        assert (await browser.post("/api/v1/tokens", json={}, headers=own)).status_code == 201


async def test_a_login_from_another_site_is_refused() -> None:
    async with serving() as rig:
        await make_user(rig)
        for path in ("login", "token", "link"):
            answer = await rig.post(
                f"{AUTH}/{path}",
                json={"user": "alice", "password": PASSWORD},
                headers={"origin": "https://evil.example"},
            )
            problem_of(answer, 403, "E.AUTH.CSRF")


async def test_one_cookie_counts_and_a_token_wins_over_it() -> None:
    async with serving() as rig:
        await make_user(rig, role="viewer")
        browser = Browser(rig)
        await browser.login()
        text = browser.http.cookies[COOKIE]
        del rig.client.headers["authorization"]
        twice = {"cookie": f"{COOKIE}={text}; {COOKIE}={text}"}
        assert (await rig.get("/api/v1/me", headers=twice)).status_code == 401
        as_token = bearer(text)
        assert (await rig.get("/api/v1/me", headers=as_token)).status_code == 401
        both = {"cookie": f"{COOKIE}={text}", **bearer(token_of(Role.ADMIN))}
        assert (await rig.get("/api/v1/me", headers=both)).json()["role"] == "admin"
        alone = {"cookie": f"other=1; {COOKIE}={text}"}
        assert (await rig.get("/api/v1/me", headers=alone)).json()["role"] == "viewer"
        token = {"cookie": f"{COOKIE}={token_of(Role.ADMIN)}"}
        assert (await rig.get("/api/v1/me", headers=token)).status_code == 401


ENDS: dict[str, Any] = {
    "logout": None,
    "password": {"password": "another horse battery"},
    "disabled": {"disabled": True},
    "role": {"role": "viewer"},
    "deleted": None,
    "revoked": None,
}


@pytest.mark.parametrize("how", ENDS)
async def test_a_session_ends_with_its_stream(how: str) -> None:
    async with serving() as rig:
        await make_user(rig)
        browser = Browser(rig)
        await browser.login()
        cookie = {"cookie": f"{COOKIE}={browser.http.cookies[COOKIE]}"}
        admin = rig.client.headers.pop("authorization")
        async with following(rig, "", **cookie) as stream:
            rig.client.headers["authorization"] = admin
            await stream.comment(1)
            if how == "logout":
                await browser.post(f"{AUTH}/logout")
            elif how == "deleted":
                assert (await rig.client.delete(f"{USERS}/alice")).status_code == 204
            elif how == "revoked":
                (token_id,) = await listed(rig)
                await rig.client.delete(f"/api/v1/tokens/{token_id}")
            else:
                assert (await rig.client.patch(f"{USERS}/alice", json=ENDS[how])).is_success
            async with asyncio.timeout(WAIT_S):
                last = await stream.next()
                assert last is not None
                assert last["data"]["code"] == "E.AUTH.INVALID_TOKEN"
        assert (await rig.get("/api/v1/me", headers={**cookie, "authorization": "x"})).is_error
        assert await browser.session() == 401


async def test_tokens_of_a_user_end_with_the_user_and_with_the_role() -> None:
    async with serving() as rig:
        await make_user(rig)
        browser = Browser(rig)
        await browser.login()
        texts = {}
        for role in ("operator", "viewer"):
            made = await browser.post("/api/v1/tokens", json={"role": role})
            texts[role] = made.json()["token"]
        await rig.client.patch(f"{USERS}/alice", json={"password": "another horse battery"})
        states = [
            (await rig.get("/api/v1/me", headers=bearer(one))).is_success for one in texts.values()
        ]
        assert states == [True, True]  # a password is not what they were given for
        await rig.client.patch(f"{USERS}/alice", json={"role": "viewer"})
        states = [
            (await rig.get("/api/v1/me", headers=bearer(one))).is_success for one in texts.values()
        ]
        assert states == [False, True]
        await rig.client.patch(f"{USERS}/alice", json={"disabled": True})
        assert (await rig.get("/api/v1/me", headers=bearer(texts["viewer"]))).status_code == 401


async def test_a_session_outlives_a_restart_and_ends_when_it_is_idle(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with serving(url, folder=tmp_path) as rig:
        await make_user(rig)
        browser = Browser(rig)
        await browser.login()
        text = browser.http.cookies[COOKIE]
    async with serving(url, folder=tmp_path) as rig:
        del rig.client.headers["authorization"]
        again = await rig.get("/api/v1/me", headers={"cookie": f"{COOKIE}={text}"})
        assert again.json()["subject"] == "alice"
        assert PASSWORD.encode() not in (tmp_path / "store.db").read_bytes()
        assert text.encode() not in (tmp_path / "store.db").read_bytes()
    async with serving(session_idle_seconds=1) as rig:
        await make_user(rig)
        browser = Browser(rig)
        await browser.login()
        assert await browser.session() == 200
        await rig.until("/api/v1/me", _waits(2))
        assert await browser.session() == 401


def _waits(looks_s: int) -> Any:
    """True when so many seconds have passed."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + looks_s
    return lambda _: loop.time() >= ends_at


async def test_attempts_are_limited_for_each_user_and_say_when_to_come_back() -> None:
    async with serving() as rig:
        await make_user(rig)
        await make_user(rig, "bob")
        for _ in range(10):
            assert (await Browser(rig).login(password="wrong wrong")).status_code == 401
        answer = await Browser(rig).login()
        problem_of(answer, 429, "E.AUTH.TOO_MANY")
        assert 1 <= int(answer.headers["retry-after"]) <= 6
        assert (await Browser(rig).login("bob")).is_success


async def test_who_guesses_elsewhere_does_not_keep_a_user_out() -> None:
    async with serving() as rig:
        await make_user(rig)
        logins = rig.scheduler.logins
        assert (await Browser(rig).login()).is_success
        for _ in range(USER_BURST):
            with pytest.raises(errors.Refused):
                await logins.check("default", "alice", "wrong wrong", "192.0.2.1")
        with pytest.raises(errors.Unavailable):
            await logins.check("default", "alice", PASSWORD, "192.0.2.1")
        assert (await Browser(rig).login()).is_success
        # Where the user has logged in before, guesses are counted, too.
        for _ in range(USER_BURST):
            assert (await Browser(rig).login(password="wrong wrong")).status_code == 401
        problem_of(await Browser(rig).login(), 429, "E.AUTH.TOO_MANY")


async def test_failed_logins_are_audited_also_of_users_that_do_not_exist() -> None:
    async with serving() as rig:
        await make_user(rig)
        typed = "my password in the wrong field"
        answers = [
            await Browser(rig).login(password="wrong wrong"),
            await Browser(rig).login("nobody"),
            await Browser(rig).login(typed),
            await Browser(rig).login("nobody", tenant="made-up"),
        ]
        seen = []
        for answer in answers:
            problem = problem_of(answer, 401, "E.AUTH.BAD_LOGIN")
            seen.append((problem, sorted(answer.headers)))
        assert seen == [seen[0]] * len(seen)
        audited = await rig.get("/api/v1/audit?action=login&outcome=refused")
        told = [(one["who"], one["code"]) for one in audited.json()["items"]]
        unknown = ("(unknown user)", "E.AUTH.BAD_LOGIN")
        assert told == [unknown, unknown, unknown, ("alice", "E.AUTH.BAD_LOGIN")]
        assert typed not in audited.text
        assert (await rig.get("/api/v1/audit/verify")).json()["ok"]


async def test_a_flood_of_failed_logins_leaves_few_entries() -> None:
    async with serving() as rig:
        for number in range(30):
            assert (await Browser(rig).login(f"nobody{number}")).status_code == 401
        audited = await rig.get("/api/v1/audit?action=login&outcome=refused&limit=200")
        assert (
            0 < len(audited.json()["items"]) <= 20
        )  # ten a minute, and a minute may end meanwhile


async def test_a_hash_of_other_parameters_is_made_anew_at_the_next_login() -> None:
    async with serving() as rig:
        await make_user(rig)
        store, claim = rig.scheduler.users._store, rig.scheduler._current.claim
        other = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(PASSWORD)
        await store.change_user(claim, "default", "alice", password_hash=other)
        assert (await Browser(rig).login(password="wrong wrong")).status_code == 401
        found = await store.find_user("default", "alice")
        assert found is not None and found.password_hash == other
        assert (await Browser(rig).login()).is_success
        found = await store.find_user("default", "alice")
        assert found is not None and found.password_hash != other
        assert not rig.scheduler.users._passwords.is_outdated(found.password_hash)
        assert (await Browser(rig).login()).is_success
        assert await store.find_user("default", "alice") == found


async def test_attempts_are_limited_for_each_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astraflow.scheduler.logins.ADDRESS_BURST", 3)
    async with serving() as rig:
        await make_user(rig)
        for number in range(3):
            assert (await Browser(rig).login(f"nobody{number}")).status_code == 401
        problem_of(await Browser(rig).login(), 429, "E.AUTH.TOO_MANY")
        problem_of(await Browser(rig).redeem("x"), 429, "E.AUTH.TOO_MANY")


async def test_a_link_logs_in_once_as_who_made_it() -> None:
    async with serving() as rig:
        answer = await rig.as_(Role.EDITOR, "POST", f"{AUTH}/links")
        assert answer.status_code == 201, answer.text
        page, _, code = answer.json()["path"].partition("#")
        assert (await rig.get(page)).headers["content-type"].startswith("text/html")
        assert await listed(rig) == {}  # a link is no token
        assert (await rig.get("/api/v1/me", headers=bearer(code))).status_code == 401
        tries = [await one.redeem(code) for one in (Browser(rig), Browser(rig))]
        assert [one.status_code for one in tries] == [200, 401]
        assert tries[0].json()["subject"] == "editor of default"
        assert tries[0].json()["role"] == "editor"
        both = (await rig.post(f"{AUTH}/links")).json()["path"].partition("#")[2]
        raced = await asyncio.gather(*(Browser(rig).redeem(both) for _ in range(5)))
        assert sorted(one.status_code for one in raced) == [200, 401, 401, 401, 401]


async def test_a_link_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astraflow.scheduler.logins.LINK_S", 0)
    async with serving() as rig:
        code = (await rig.post(f"{AUTH}/links")).json()["path"].partition("#")[2]
        problem_of(await Browser(rig).redeem(code), 401, "E.AUTH.INVALID_TOKEN")


async def test_a_user_changes_the_own_password() -> None:
    async with serving() as rig:
        await make_user(rig)
        browser = Browser(rig)
        await browser.login()
        new = "another horse battery"
        wrong = await browser.post(f"{AUTH}/password", json={"current": "no", "new": new})
        problem_of(wrong, 401, "E.AUTH.BAD_LOGIN")
        done = await browser.post(f"{AUTH}/password", json={"current": PASSWORD, "new": new})
        assert done.status_code == 204
        assert await browser.session() == 401
        assert (await Browser(rig).login(password=PASSWORD)).status_code == 401
        assert (await Browser(rig).login(password=new)).is_success
        answer = await rig.post(f"{AUTH}/password", json={"current": new, "new": PASSWORD})
        problem_of(answer, 404, "E.USER.NOT_FOUND")


async def test_a_program_gets_a_token_with_a_password_and_ends_it() -> None:
    async with serving() as rig:
        await make_user(rig)
        body = {"user": "alice", "password": PASSWORD, "label": "laptop", "ttlSeconds": 60}
        made = await rig.post(f"{AUTH}/token", json=body)
        assert made.status_code == 201, made.text
        headers = bearer(made.json()["token"])
        assert (await rig.get("/api/v1/me", headers=headers)).json()["subject"] == "alice"
        assert (await listed(rig))[made.json()["tokenId"]]["label"] == "laptop"
        session = (await rig.get(f"{AUTH}/session", headers=headers)).json()
        assert (session["subject"], session["csrfToken"]) == ("alice", None)
        assert (await rig.post(f"{AUTH}/logout", headers=headers)).status_code == 204
        assert (await rig.get("/api/v1/me", headers=headers)).status_code == 401
        assert (await rig.post(f"{AUTH}/logout")).status_code == 204  # one of the settings stays
        assert (await rig.get("/api/v1/me")).status_code == 200


async def test_users_are_listed_shown_changed_and_deleted() -> None:
    async with serving() as rig:
        for name in ("carol", "alice", "bob"):
            await make_user(rig, name)
        problem_of(
            await rig.post(USERS, json={"name": "bob", "password": PASSWORD}),
            409,
            "E.USER.CONFLICT",
        )
        first = (await rig.get(f"{USERS}?limit=2")).json()
        rest = (await rig.get(f"{USERS}?limit=2&cursor={first['nextCursor']}")).json()
        found = [one["name"] for one in first["items"] + rest["items"]]
        assert found == ["alice", "bob", "carol"]
        assert "password" not in str(first).lower()
        changed = await rig.client.patch(f"{USERS}/bob", json={"role": "admin"})
        assert (await rig.get(f"{USERS}/bob")).json() == changed.json()
        assert changed.json()["role"] == "admin"
        assert (await rig.client.delete(f"{USERS}/bob")).status_code == 204
        for answer in (
            await rig.get(f"{USERS}/bob"),
            await rig.client.patch(f"{USERS}/bob", json={"password": PASSWORD}),
            await rig.client.patch(f"{USERS}/bob", json={}),
            await rig.client.delete(f"{USERS}/bob"),
        ):
            problem_of(answer, 404, "E.USER.NOT_FOUND")


async def test_an_admin_of_the_site_makes_users_of_other_tenants_and_nobody_else() -> None:
    async with serving() as rig:
        body = {"name": "dora", "password": PASSWORD}
        missing = await rig.post(USERS, json=body, params={"tenant": OTHER})
        problem_of(missing, 404, "E.TENANT.NOT_FOUND")
        await rig.post("/api/v1/tenants", json={"tenant": OTHER})
        await make_user(rig, "dora", "admin", tenant=OTHER)
        assert [
            one["name"] for one in (await rig.get(f"{USERS}?tenant={OTHER}")).json()["items"]
        ] == ["dora"]
        browser = Browser(rig)
        assert (await browser.login("dora", tenant=OTHER)).is_success
        assert [one["name"] for one in (await browser.http.get(USERS)).json()["items"]] == ["dora"]
        answer = await browser.http.get(f"{USERS}?tenant=default")
        problem_of(answer, 403, "E.AUTH.FORBIDDEN")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "Alice"},
        {"name": ""},
        {"name": "a b"},
        {"name": "alice\n"},
        {"name": "x" * 129},
        {"password": "short"},
        {"password": "x" * 1_025},
        {"role": "worker"},
        {"role": "root"},
        {"admin": True},
    ],
)
async def test_what_cannot_be_a_user_is_refused(body: dict[str, Any]) -> None:
    async with serving() as rig:
        whole = {"name": "alice", "password": PASSWORD, **body}
        problem = problem_of(await rig.post(USERS, json=whole), 400, "E.REQUEST.INVALID")
        assert "(?!" not in problem["detail"], "a pattern is shown as people read it"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (USERS, '{"name": "dora", "password": "long enough", "role": "viewer", "role": "admin"}'),
        (
            USERS,
            '{"name": "dora", "password": "long enough", "role": "viewer", "\\u0072ole": "admin"}',
        ),
        ("/api/v1/tokens", '{"role": "viewer", "role": "admin"}'),
        ("/api/v1/tenants", '{"tenant": "one", "tenant": "two"}'),
        ("/api/v1/auth/login", '{"user": "alice", "user": "bob", "password": "x"}'),
    ],
)
async def test_a_key_that_is_there_twice_is_refused(path: str, body: str) -> None:
    async with serving() as rig:
        headers = {"content-type": "application/json"}
        refused = await rig.post(path, content=body, headers=headers)
        problem = problem_of(refused, 400, "E.REQUEST.INVALID")
        assert "twice" in problem["detail"]


async def test_an_admins_token_for_a_user_ends_with_the_user() -> None:
    async with serving() as rig:
        await make_user(rig)
        made = await create(rig, role="viewer", subject="alice")
        await rig.client.patch(f"{USERS}/alice", json={"disabled": True})
        assert (await rig.get("/api/v1/me", headers=bearer(made["token"]))).status_code == 401
