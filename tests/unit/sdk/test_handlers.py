"""How handlers are found and called."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from astraflow_sdk import ConfigurationError, Context, node
from astraflow_sdk.host.handlers import Handler, load_handlers

from tests.unit.sdk.port import context


class TestCall:
    def test_parameters_are_passed_by_name_and_others_left_out(self) -> None:
        handler = Handler(lambda a, b=2: (a, b))
        assert handler.call(context({"a": 1, "c": 3})) == (1, 2)

    def test_the_context_goes_to_the_one_that_asks_for_it_by_name_or_type(self) -> None:
        def by_name(a: int, ctx: object) -> object:
            return ctx

        def by_type(me: Context, a: int) -> object:
            return me

        ctx = context({"a": 1})
        assert Handler(by_name).call(ctx) is ctx
        assert Handler(by_type).call(ctx) is ctx

    def test_a_missing_parameter_is_named(self) -> None:
        handler = Handler(lambda b, a, *, c, d=1: None)
        with pytest.raises(ConfigurationError, match=r"a\.b needs a value for: a, c"):
            handler.call(context({"b": 1}))

    def test_a_function_with_room_for_all_gets_all(self) -> None:
        def greedy(ctx: Context, a: int, **rest: Any) -> object:
            return a, rest

        assert Handler(greedy).call(context({"a": 1, "b": 2})) == (1, {"b": 2})

    def test_a_function_that_asks_for_nothing_is_called_with_nothing(self) -> None:
        assert Handler(lambda: "x").call(context({"a": 1})) == "x"

    def test_only_plain_functions_run_inline(self) -> None:
        @node("a.plain", inline=True)
        def plain() -> None: ...

        @node("a.waits", inline=True)
        async def waits() -> None: ...

        assert Handler(plain).is_inline
        assert not Handler(waits).is_inline
        assert Handler(waits).is_async
        assert not Handler(lambda: None).is_inline


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before, known = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = before
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(folder: Path, manifest: object, **modules: str) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for name, text in modules.items():
        path = folder / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class TestLoad:
    def test_functions_are_found_by_their_mark_in_any_module(self, folder: Path) -> None:
        marked = "from astraflow_sdk import node\n@node('{0}')\ndef run(): return '{0}'"
        nodes = [{"type": "p.one"}, {"type": "p.two"}]
        package = {"inner.__init__": "", "inner.deep": marked.format("p.two")}
        write(folder, {"nodes": nodes}, outer_module=marked.format("p.one"), **package)
        found = load_handlers(str(folder))
        assert {name: handler.call(context()) for name, handler in found.items()} == {
            "p.one": "p.one",
            "p.two": "p.two",
        }

    def test_a_manifest_may_name_the_function(self, folder: Path) -> None:
        nodes = [{"type": "p.one", "runtimes": {"python": {"handler": "named_module:Kit.run"}}}]
        write(
            folder, {"nodes": nodes}, named_module="class Kit:\n    run = staticmethod(lambda: 1)"
        )
        assert load_handlers(str(folder))["p.one"].call(context()) == 1

    def test_a_manifest_may_name_a_method_of_an_adapter(self, folder: Path) -> None:
        nodes = [{"type": "p.one", "runtimes": {"browser": {"handler": "open"}}}]
        adapters = [
            {"name": "x", "runtime": "other", "entrypoint": "no_module:No", "capabilities": []},
            {"name": "p", "runtime": "browser", "entrypoint": "adapter_module:Adapter"},
        ]
        code = "class Adapter:\n    def open(self, context): return context.attempt"
        write(folder, {"nodes": nodes, "adapters": adapters}, adapter_module=code)
        assert load_handlers(str(folder))["p.one"].call(context()) == 2

    def test_what_the_scheduler_carries_out_needs_no_handler(self, folder: Path) -> None:
        write(folder, {"nodes": [{"type": "p.wait", "executedBy": "scheduler"}]})
        assert load_handlers(str(folder)) == {}

    @pytest.mark.parametrize(
        ("node_fields", "says"),
        [
            ({}, "has no handler for the node type: p.one"),
            ({"runtimes": {"python": {"handler": "json:nothing"}}}, "not there: json:nothing"),
        ],
    )
    def test_a_node_without_a_handler_is_named(
        self, folder: Path, node_fields: dict[str, Any], says: str
    ) -> None:
        write(folder, {"nodes": [{"type": "p.one", **node_fields}]})
        with pytest.raises(ConfigurationError, match=says):
            load_handlers(str(folder))
