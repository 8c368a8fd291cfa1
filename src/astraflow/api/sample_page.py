"""The page at `/samples/login`: something that the browser example can open and click, with no network beyond us."""

from __future__ import annotations

from typing import Final

PAGE: Final = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>AstraFlow sample: log in</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem }
input, button { font: inherit; padding: .5rem .75rem; margin: .25rem 0; width: 100%; box-sizing: border-box }
</style>
</head>
<body>
<h1 id="says">Log in</h1>
<p>A page for trying browser nodes. It sends nothing anywhere.</p>
<input id="user" placeholder="Name" value="Ada" aria-label="Name">
<button id="login-button">Log in</button>
<script>
document.getElementById("login-button").addEventListener("click", () => {
  document.title = "AstraFlow sample: logged in";
  document.getElementById("says").textContent = "Welcome, " + document.getElementById("user").value;
  document.getElementById("login-button").disabled = true;
});
</script>
</body>
</html>
"""
