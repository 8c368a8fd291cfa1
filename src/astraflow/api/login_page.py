"""The page to log in with: by the code of a link, or by name and password. It brings all it needs."""

from __future__ import annotations

import base64
import hashlib
import html
from typing import Final

_SCRIPT: Final = """
const say = (text) => { document.getElementById("said").textContent = text; };
const show = (id) => { document.getElementById(id).hidden = false; };
const hide = (id) => { document.getElementById(id).hidden = true; };
let csrf = "";
async function post(path, body) {
  const headers = {"content-type": "application/json"};
  if (csrf) headers["x-csrf-token"] = csrf;
  return fetch("/api/v1/auth/" + path, {method: "POST", headers, body: JSON.stringify(body)});
}
function welcome(who) {
  csrf = who.csrfToken || "";
  say("Logged in as " + who.subject + " (" + who.role + ") of tenant " + who.tenant);
  hide("login"); show("inside");
}
async function settle(response) {
  const body = await response.json();
  if (response.ok) welcome(body);
  else { say(body.detail); show("login"); }
}
async function begin() {
  const code = location.hash.slice(1);
  if (code) {
    history.replaceState(null, "", location.pathname);
    return settle(await post("link", {code}));
  }
  const known = await fetch("/api/v1/auth/session");
  if (known.ok) return welcome(await known.json());
  say("Log in"); show("login");
}
document.getElementById("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = new FormData(event.target);
  await settle(await post("login", Object.fromEntries(given)));
});
document.getElementById("out").addEventListener("click", async () => {
  await post("logout", {});
  location.reload();
});
begin();
"""

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 4rem auto; padding: 0 1rem; }
label { display: block; margin: .75rem 0; }
input { width: 100%; font: inherit; padding: .4rem; box-sizing: border-box; }
button { font: inherit; padding: .4rem 1rem; }
"""

_ELSEWHERE: Final = """<p><a id="oidc" href="/api/v1/auth/oidc/login">Log in with single sign-on</a></p>
"""


def _page(elsewhere: str) -> bytes:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>AstraFlow: log in</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>AstraFlow</h1>
<p id="said" role="status"></p>
<form id="login" hidden>
<label>User <input name="user" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<label>Tenant <input name="tenant" value="default" required></label>
<button>Log in</button>
{elsewhere}</form>
<div id="inside" hidden>
<p><a href="/">Open the app</a></p>
<p><a href="/api/docs">Description of the API</a></p>
<button id="out" type="button">Log out</button>
</div>
<script>{_SCRIPT}</script>
</body>
</html>
""".encode()


PAGE: Final = _page("")
PAGE_WITH_OIDC: Final = _page(_ELSEWHERE)


def refusal_page(message: str, code: str) -> bytes:
    """What somebody sees whose login at the issuer did not work."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>AstraFlow: not logged in</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Not logged in</h1>
<p role="alert">{html.escape(message)}</p>
<p>{html.escape(code)}</p>
<p><a href="/login">Try again</a></p>
</body>
</html>
""".encode()


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_hash(_STYLE)}'; script-src 'sha256-{_hash(_SCRIPT)}'; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
).encode()
"""Only this script and this style, and nothing from elsewhere."""
