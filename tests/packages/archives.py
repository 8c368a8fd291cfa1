"""Archives for tests: whole ones, and bytes that no tool of good will would write."""

from __future__ import annotations

import json
import struct
import textwrap
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

STORED, DEFLATED = 0, 8
NONE: Mapping[str, Any] = MappingProxyType({})
HANDLERS = """\
from astraflow_sdk import node


@node("demo.say")
def say(text: str = "hello") -> dict[str, str]:
    return {"text": text}
"""


def manifest(**fields: Any) -> dict[str, Any]:
    """The manifest of a package that works with `HANDLERS` as `demo_nodes/__init__.py`."""
    return {
        "name": "demo",
        "version": "1.0.0",
        "schemaVersion": "1.0.0",
        "adapters": [
            {
                "name": "demo",
                "runtime": "python",
                "entrypoint": "demo_nodes:say",
                "capabilities": ["demo.say"],
            }
        ],
        "nodes": [{"type": "demo.say"}],
        **fields,
    }


class Item(NamedTuple):
    """One entry, with everything that a liar could want to say of it."""

    name: str | bytes
    content: bytes = b""
    mode: int = 0o100644
    method: int = STORED
    size: int | None = None
    crc: int | None = None
    flags: int = 0x0800
    extra: bytes = b""
    local_name: bytes | None = None
    packed: bytes | None = None


def items(document: dict[str, Any] | None = None, *more: Item) -> list[Item]:
    """The entries of a package that works, and more."""
    return [
        Item("manifest.json", json.dumps(document or manifest()).encode()),
        Item("demo_nodes/__init__.py", HANDLERS.encode()),
        *more,
    ]


def write_zip(path: Path, entries: list[Item], *, before: bytes = b"", behind: bytes = b"") -> Path:
    """Write a zip byte by byte. `before` and `behind` are put around the entries, the offsets are true."""
    out = bytearray(before)
    rows = bytearray()
    for item in entries:
        name = item.name.encode() if isinstance(item.name, str) else item.name
        packed = item.packed
        if packed is None:
            packed = item.content if item.method == STORED else deflated(item.content)
        size = len(item.content) if item.size is None else item.size
        crc = zlib.crc32(item.content) if item.crc is None else item.crc
        at = len(out)
        said = item.local_name if item.local_name is not None else name
        out += struct.pack(
            "<4s5H3L2H",
            b"PK\3\4",
            20,
            item.flags,
            item.method,
            0,
            0x21,
            crc,
            len(packed),
            size,
            len(said),
            0,
        )
        out += said + packed
        rows += struct.pack(
            "<4s6H3L5H2L", b"PK\1\2", 0x0314, 20, item.flags, item.method, 0, 0x21, crc, len(packed), size,
            len(name), len(item.extra), 0, 0, 0, item.mode << 16, at,
        )  # fmt: skip
        rows += name + item.extra
    out += behind
    end = struct.pack(
        "<4s4H2LH", b"PK\5\6", 0, 0, len(entries), len(entries), len(rows), len(out), 0
    )
    path.write_bytes(bytes(out + rows) + end)
    return path


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def write_folder(
    folder: Path, document: dict[str, Any] | None = None, files: Mapping[str, str] = NONE
) -> Path:
    """A package as its author has it. `files`: more of them, or others, by their paths."""
    document = document or manifest()
    written = {"manifest.json": json.dumps(document), "demo_nodes/__init__.py": HANDLERS, **files}
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def write_adapter(
    folder: Path,
    name: str,
    method: str,
    code: str,
    *,
    manifest: Mapping[str, Any] = NONE,
    **node: Any,
) -> Path:
    """A package with one node, which is a method of the class `Adapter` in its code."""
    kind, module = f"{name}.{method}", f"{name}_nodes"
    adapter = {"name": name, "runtime": "python", "entrypoint": f"{module}:Adapter"}
    document = {
        "name": name,
        "version": "1.0.0",
        "schemaVersion": "1.0.0",
        "adapters": [{**adapter, "capabilities": [kind]}],
        "nodes": [{"type": kind, "runtimes": {"python": {"handler": method}}, **node}],
        **manifest,
    }
    (folder / module).mkdir(parents=True)
    (folder / module / "__init__.py").write_text(textwrap.dedent(code))
    (folder / "manifest.json").write_text(json.dumps(document))
    return folder
