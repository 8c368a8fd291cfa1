"""The page at `/api/docs`: the description of the API for people. It brings all it needs and needs no network."""

from __future__ import annotations

from typing import Final

PAGE: Final = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>AstraFlow API</title>
<style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 13px/1.45 ui-monospace, monospace }
pre { overflow: auto; padding: .75rem; border: 1px solid #8884; border-radius: 6px }
details { border: 1px solid #8884; border-radius: 6px; margin: .4rem 0; padding: .4rem .75rem }
summary { cursor: pointer }
summary b { display: inline-block; min-width: 4.5rem }
td { padding: .15rem .9rem .15rem 0; vertical-align: top }
</style>
</head>
<body>
<h1>AstraFlow API</h1>
<p id="says">Reading the description&hellip;</p>
<main id="main"></main>
<script>
function make(tag, text, into) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (into) into.append(element);
  return element;
}
function find(doc, part) {
  if (!part || !part.$ref) return part;
  return part.$ref.slice(2).split("/").reduce((inside, name) => inside[name], doc);
}
function print(into, title, value) {
  if (value === undefined) return;
  if (title) make("p", title, into);
  make("pre", JSON.stringify(value, null, 2), into);
}
function describe(doc, into, method, path, operation) {
  const box = make("details", "", into);
  const head = make("summary", "", box);
  make("b", method.toUpperCase(), head);
  make("code", path, head);
  make("span", "  " + operation.summary, head);
  if (operation.description) make("p", operation.description, box);
  const table = make("table", "", box);
  for (const parameter of operation.parameters || []) {
    const row = make("tr", "", table);
    make("td", parameter.in, row);
    make("code", parameter.name, make("td", "", row));
    make("td", parameter.description, row);
  }
  if (operation.requestBody) {
    for (const [type, content] of Object.entries(operation.requestBody.content)) {
      print(box, "Body, for example", content.example);
      print(box, "Body: " + type, find(doc, content.schema));
    }
  }
  for (const [status, given] of Object.entries(operation.responses)) {
    const reply = find(doc, given);
    make("p", (status === "default" ? "else" : status) + ": " + reply.description, box);
    for (const content of Object.values(reply.content || {})) print(box, "", content.example);
  }
}
function show(doc) {
  document.getElementById("says").textContent = doc.info.description;
  const sections = {};
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (!operation.operationId) continue;
      const tag = operation.tags[0];
      if (!sections[tag]) {
        sections[tag] = make("section", "", document.getElementById("main"));
        make("h2", tag, sections[tag]);
      }
      describe(doc, sections[tag], method, path, operation);
    }
  }
}
fetch("/api/openapi.json")
  .then((response) => (response.ok ? response.json() : Promise.reject(response.status)))
  .then(show)
  .catch((error) => {
    document.getElementById("says").textContent = "Cannot show the description: " + error;
    console.error(error);
  });
</script>
</body>
</html>
"""
