"""What a manifest must keep besides its shape; every breach is reported, with its pointer.

Whether an entrypoint and a hook really are in the archive is for the installer,
which has the archive; here is what the manifest alone can tell.

- Names become folder names on every system: lower case, no reserved device names.
- An entrypoint is `module.path:Name` of the package's own code, never of the standard library:
  `os:system` is a well-formed entrypoint, too.
- A dependency is pinned with `==` and comes from the configured index: no options, no URLs.
- Paths stay inside the package.
- Node types below `core.` belong to package `core`, those that it does not have yet included.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

from astraflow.core.errors import PKG_INVALID
from astraflow.core.workflow.core_manifest import CORE_PACKAGE
from astraflow.core.workflow.limits import (
    MAX_DEPENDENCIES,
    MAX_DESCRIPTION_CHARS,
    MAX_HOOKS,
    MAX_KEY_CHARS,
    MAX_LABEL_CHARS,
    MAX_LIST_ITEMS,
    MAX_MANIFEST_NODES,
)
from astraflow.core.workflow.ports import PortCompiler
from astraflow.core.workflow.problems import DefinitionProblem, Problems
from astraflow.core.workflow.schema_rules import check_node_schemas
from astraflow.core.workflow.versions import is_specifier_set, parse_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astraflow.core.workflow.manifest import Adapter, Manifest, ManifestBody, ManifestNode

PACKAGE_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
NODE_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*", re.ASCII)
_RESERVED: Final = frozenset({"con", "prn", "aux", "nul"})
_RESERVED_NUMBERED: Final = re.compile(r"(?:com|lpt)[0-9]")
_SCHEMA_VERSION: Final = re.compile(r"1\.[0-9]{1,4}\.[0-9]{1,4}")
_ENTRYPOINT: Final = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*", re.ASCII
)
_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_DEPENDENCY: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(?:\[[A-Za-z0-9._, -]+\])?"
    r"\s*==\s*(?P<version>[A-Za-z0-9.!+_-]+)",
    re.ASCII,
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})", re.ASCII
)
_MAX_FILE_PATH_CHARS: Final = 255
_MAX_FILE_PATH_DEPTH: Final = 32


def is_package_name(text: str) -> bool:
    """Whether the text may name a package, which is also the name of its folder."""
    if not PACKAGE_NAME.fullmatch(text) or text in _RESERVED:
        return False
    return not _RESERVED_NUMBERED.fullmatch(text)


def validate_manifest(manifest: Manifest) -> list[DefinitionProblem]:
    """All problems of a decoded manifest; an empty list means that it may be published."""
    problems = Problems(only=PKG_INVALID)
    _Rules(manifest.body, problems).check_all()
    return problems.found()


def _pin(text: str) -> re.Match[str] | None:
    """A requirement `name[extras]==version; marker --hash=sha256:…`, or None.

    It is taken apart with string methods where a pattern would try the spaces again and again.
    """
    head, *hashes = text.split("--hash=")
    if not all(_HASH.fullmatch(digest.strip()) for digest in hashes):
        return None
    if hashes and not head.endswith((" ", "\t")):
        return None
    requirement, semicolon, marker = head.partition(";")
    if semicolon and (not marker.strip() or ";" in marker or "@" in marker or "--" in marker):
        return None
    return _DEPENDENCY.fullmatch(requirement.strip())


class _Rules:
    def __init__(self, body: ManifestBody, problems: Problems) -> None:
        self._body = body
        self._problems = problems
        self._ports = PortCompiler(problems)

    def check_all(self) -> None:
        self._check_identity()
        self._check_python()
        if self._problems.check_count("/adapters", self._body.adapters, MAX_LIST_ITEMS):
            for place, adapter in enumerate(self._body.adapters):
                self._check_adapter(adapter, f"/adapters/{place}")
            self._unique("/adapters", "name", [adapter.name for adapter in self._body.adapters])
        if self._problems.check_count("/nodes", self._body.nodes, MAX_MANIFEST_NODES):
            for place, node in enumerate(self._body.nodes):
                self._check_node(node, f"/nodes/{place}")
            self._unique("/nodes", "type", [node.type for node in self._body.nodes])
        self._check_files()
        self._check_signature()

    def _refuse(self, pointer: str, message: str) -> None:
        self._problems.add(pointer, PKG_INVALID, message)

    def _unique(self, pointer: str, field: str, keys: Sequence[str]) -> None:
        seen: set[str] = set()
        for place, key in enumerate(keys):
            if key in seen:
                self._refuse(f"{pointer}/{place}/{field}", f"the {field} is there twice: {key}")
            seen.add(key)

    def _text(self, pointer: str, text: str | None, limit: int = MAX_LABEL_CHARS) -> None:
        if text is not None:
            self._problems.check_text(pointer, text, limit)

    def _check_identity(self) -> None:
        body = self._body
        if not is_package_name(body.name):
            self._refuse("/name", f"a package cannot have this name: {body.name[:80]!r}")
        if parse_version(body.version) is None:
            self._refuse("/version", f"not a version (PEP 440): {body.version[:80]!r}")
        if not _SCHEMA_VERSION.fullmatch(body.schema_version):
            message = f"only manifests of schema 1 can be read: {body.schema_version[:80]!r}"
            self._refuse("/schemaVersion", message)
        self._text("/description", body.description, MAX_DESCRIPTION_CHARS)
        if self._problems.check_count("/permissions", body.permissions, MAX_LIST_ITEMS):
            for place, permission in enumerate(body.permissions):
                self._problems.check_key(f"/permissions/{place}", permission, MAX_KEY_CHARS)

    def _check_python(self) -> None:
        python = self._body.python
        if python is None:
            return
        requires = python.requires
        if requires is not None and (
            len(requires) > MAX_LABEL_CHARS or not is_specifier_set(requires)
        ):
            message = f"not a list of version clauses (PEP 440): {requires[:80]!r}"
            self._refuse("/python/requires", message)
        if self._problems.check_count(
            "/python/dependencies", python.dependencies, MAX_DEPENDENCIES
        ):
            for place, dependency in enumerate(python.dependencies):
                self._check_dependency(dependency, f"/python/dependencies/{place}")

    def _check_dependency(self, text: str, pointer: str) -> None:
        if len(text) > MAX_DESCRIPTION_CHARS:
            self._refuse(pointer, f"the dependency is longer than {MAX_DESCRIPTION_CHARS}")
            return
        match = _pin(text)
        if match is None:
            message = f"not a dependency pinned as name==version: {text[:80]!r}"
            self._refuse(pointer, message)
        elif parse_version(match["version"]) is None:
            self._refuse(pointer, f"not a version to pin (PEP 440): {match['version'][:80]!r}")

    def _check_adapter(self, adapter: Adapter, pointer: str) -> None:
        self._problems.check_key(f"{pointer}/name", adapter.name, MAX_KEY_CHARS)
        self._problems.check_key(f"{pointer}/runtime", adapter.runtime, MAX_KEY_CHARS)
        entrypoint = adapter.entrypoint
        if len(entrypoint) > MAX_LABEL_CHARS or not _ENTRYPOINT.fullmatch(entrypoint):
            message = f"not an entrypoint of the form module.path:Name: {entrypoint[:80]!r}"
            self._refuse(f"{pointer}/entrypoint", message)
        elif re.split(r"[.:]", entrypoint, maxsplit=1)[0] in sys.stdlib_module_names:
            message = f"the entrypoint is not in the package: {entrypoint}"
            self._refuse(f"{pointer}/entrypoint", message)
        if adapter.idempotency is not None and not _WORD.fullmatch(adapter.idempotency):
            message = f"not a word in lower case: {adapter.idempotency[:80]!r}"
            self._refuse(f"{pointer}/idempotency", message)
        if self._problems.check_count(
            f"{pointer}/capabilities", adapter.capabilities, MAX_MANIFEST_NODES
        ):
            for place, capability in enumerate(adapter.capabilities):
                self._check_type(capability, f"{pointer}/capabilities/{place}")

    def _check_type(self, text: str, pointer: str) -> None:
        if len(text) > MAX_KEY_CHARS or not NODE_TYPE.fullmatch(text):
            self._refuse(pointer, f"not the name of a node type: {text[:80]!r}")

    def _check_node(self, node: ManifestNode, pointer: str) -> None:
        self._check_type(node.type, f"{pointer}/type")
        namespace = re.split(r"[.-]", node.type, maxsplit=1)[0].lower()
        if namespace == CORE_PACKAGE and self._body.name != CORE_PACKAGE:
            message = f"node types below {CORE_PACKAGE}. belong to package {CORE_PACKAGE}: {node.type[:80]}"
            self._refuse(f"{pointer}/type", message)
        self._text(f"{pointer}/label", node.label)
        self._text(f"{pointer}/category", node.category)
        self._text(f"{pointer}/description", node.description, MAX_DESCRIPTION_CHARS)
        self._text(f"{pointer}/help", node.help, MAX_DESCRIPTION_CHARS)
        self._text(f"{pointer}/icon", node.icon)
        self._text(f"{pointer}/color", node.color)
        if self._problems.check_count(f"{pointer}/tags", node.tags, MAX_LIST_ITEMS):
            for place, tag in enumerate(node.tags):
                self._problems.check_key(f"{pointer}/tags/{place}", tag, MAX_LABEL_CHARS)
        offered = {adapter.runtime for adapter in self._body.adapters}
        for runtime in node.runtimes:
            if runtime not in offered:
                message = f"no adapter of the package has this runtime: {runtime[:80]!r}"
                self._refuse(f"{pointer}/runtimes", message)
        if node.ui is not None:
            self._ports.compile(node.ui, f"{pointer}/ui")
        if node.schema is not None:
            check_node_schemas(self._problems, f"{pointer}/schema", node.schema, PKG_INVALID)

    def _check_files(self) -> None:
        body = self._body
        if body.hooks is not None:
            for name, scripts in (
                ("install", body.hooks.install),
                ("uninstall", body.hooks.uninstall),
            ):
                if self._problems.check_count(f"/hooks/{name}", scripts, MAX_HOOKS):
                    for place, script in enumerate(scripts):
                        self._check_inside(script, f"/hooks/{name}/{place}")
        files = body.resource_files()
        base = "/resources" if isinstance(body.resources, list) else "/resources/files"
        if self._problems.check_count(base, files, MAX_LIST_ITEMS):
            for place, file in enumerate(files):
                self._check_inside(file.path, f"{base}/{place}/path")
                self._check_digest(file.sha256, f"{base}/{place}/sha256")
                if file.url is not None and not file.url.startswith("https://"):
                    self._refuse(f"{base}/{place}/url", "a resource is fetched over https only")

    def _check_inside(self, path: str, pointer: str) -> None:
        segments = path.split("/")
        outside = any(segment in ("", ".", "..") for segment in segments)
        if outside or "\\" in path or ":" in path or not path.isprintable():
            self._refuse(pointer, f"the path must stay inside the package: {path[:80]!r}")
        elif len(path) > _MAX_FILE_PATH_CHARS or len(segments) > _MAX_FILE_PATH_DEPTH:
            self._refuse(pointer, f"the path is too long or too deep: {path[:80]!r}")

    def _check_digest(self, digest: str | None, pointer: str) -> None:
        if digest is not None and not _SHA256.fullmatch(digest):
            self._refuse(pointer, f"not a sha256 in lower-case hex: {digest[:80]!r}")

    def _check_signature(self) -> None:
        signature = self._body.signature
        if signature is None:
            return
        self._check_digest(signature.sha256, "/signature/sha256")
        self._text("/signature/signedBy", signature.signed_by)
        self._text("/signature/value", signature.value)
        if signature.signed_at is not None and not _TIME.fullmatch(signature.signed_at):
            self._refuse("/signature/signedAt", "not a time as RFC 3339 writes it")
