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
  if (response.ok) location.replace("/");
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
:root { color-scheme: light dark; --surface: #f7f8fa; --card: #fff; --border: #e1e4ea; --field: #8a91a0;
  --text: #1a1d23; --dim: #5c6270; --accent: #4263eb; --link: #4263eb; }
@media (prefers-color-scheme: dark) {
  :root { --surface: #16181d; --card: #1d2027; --border: #31353f; --field: #6d7482; --text: #e6e8ee;
    --dim: #9aa3b2; --link: #748ffc; }
}
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--surface); color: var(--text);
  font: 14px/1.5 Inter, system-ui, sans-serif; }
main { width: min(22rem, calc(100vw - 2rem)); box-sizing: border-box; padding: 2rem; background: var(--card);
  border: 1px solid var(--border); border-radius: 8px; }
h1 { margin: .5rem 0 .25rem; font-size: 1.25rem; }
p { margin: .5rem 0; }
#said { color: var(--dim); }
label { display: block; margin: .75rem 0; font-size: .8125rem; font-weight: 500; }
input { width: 100%; box-sizing: border-box; margin-top: .25rem; padding: .4rem .5rem; font: inherit; color: inherit;
  background: var(--card); border: 1px solid var(--field); border-radius: 4px; }
button { padding: .4rem 1rem; font: inherit; font-weight: 600; color: #fff; background: var(--accent); border: 0;
  border-radius: 4px; cursor: pointer; }
form button { width: 100%; margin-top: .5rem; }
a { color: var(--link); }
input:focus-visible, button:focus-visible, a:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
"""

_LOGO: Final = (
    '<svg width="40" height="40" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" '
    'fill="#4263eb"/><path d="M9 22 16 8l7 14" fill="none" stroke="#fff" stroke-width="2.6" '
    'stroke-linecap="round" stroke-linejoin="round"/><g fill="#fff"><circle cx="9" cy="22" r="2.8"/>'
    '<circle cx="23" cy="22" r="2.8"/><circle cx="16" cy="8.5" r="2.8"/></g></svg>'
)

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
<main>
{_LOGO}
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
</main>
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
<main>
<h1>Not logged in</h1>
<p role="alert">{html.escape(message)}</p>
<p>{html.escape(code)}</p>
<p><a href="/login">Try again</a></p>
</main>
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
