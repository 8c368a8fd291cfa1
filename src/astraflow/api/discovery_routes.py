"""What an installation is, what comes with it, and where something is."""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import AsyncIterator
from typing import Final

from astraflow import __version__
from astraflow.api.asgi import AsgiApp
from astraflow.api.requests import Request
from astraflow.api.responses import Response, json_response
from astraflow.api.routes import Endpoints, Reply, route
from astraflow.core import errors
from astraflow.core.contract.base import NoQuery
from astraflow.core.contract.discovery import (
    AboutServer,
    DiskUse,
    ExamplePage,
    ExampleSummary,
    SearchFor,
    SearchHit,
    SearchResult,
)
from astraflow.core.contract.workflows import Definition
from astraflow.core.errors import NotFound
from astraflow.core.security.policy import READ
from astraflow.core.workflow import Miss
from astraflow.scheduler.examples import ShippedExample, shipped_examples
from astraflow.store.runs import RunFilter

EXAMPLES: Final = "/api/v1/examples"
MAX_HITS: Final = 50
"""Of each kind."""


class DiscoveryEndpoints(Endpoints):
    """The endpoints that belong to no one thing."""

    @route("GET", "/api/v1/about", READ, "getAbout", "show what serves here, and its room",
           tag="system", replies=AboutServer)  # fmt: skip
    async def about(self, request: Request[NoQuery]) -> AsgiApp:
        settings = self._services.settings
        store, usage = await self._scheduler.usage()
        disk = await asyncio.to_thread(shutil.disk_usage, settings.data_dir)
        view = AboutServer(
            version=__version__,
            python=platform.python_version(),
            store=store,
            schema_version=usage.schema_version,
            disk=DiskUse(store_bytes=usage.bytes, free_bytes=disk.free, total_bytes=disk.total),
        )
        return json_response(view)

    @route("GET", EXAMPLES, READ, "listExamples", "list the example workflows",
           tag="workflows", text="They come with the installation; save one to change it.",
           replies=ExamplePage)  # fmt: skip
    async def list_examples(self, request: Request[NoQuery]) -> AsgiApp:
        found = await asyncio.to_thread(shipped_examples)
        items = [self._summary(request.tenant, one) for one in found.values()]
        return json_response(ExamplePage(items=items, next_cursor=None))

    @route("GET", f"{EXAMPLES}/{{id}}", READ, "getExample", "show an example workflow",
           tag="workflows", replies={200: Reply("The definition.", Definition)})  # fmt: skip
    async def show_example(self, request: Request[NoQuery]) -> AsgiApp:
        found = (await asyncio.to_thread(shipped_examples)).get(request.params["id"])
        if found is None:
            raise NotFound(errors.WORKFLOW_NOT_FOUND, "there is no such example")
        return Response(found.definition)

    def _summary(self, tenant: str, example: ShippedExample) -> ExampleSummary:
        catalog = self._scheduler.catalogs.of(tenant)
        types = sorted(set(example.node_types))
        return ExampleSummary(
            id=example.example_id,
            name=example.name,
            description=example.description,
            node_count=len(example.node_types),
            node_types=types,
            runnable=not any(isinstance(catalog.find(one), Miss) for one in types),
        )

    @route(
        "GET",
        "/api/v1/search",
        READ,
        "search",
        "find workflows, runs, node types, packages and workers by name, label or id",
        tag="system",
        query=SearchFor,
        replies=SearchResult,
    )
    async def search(self, request: Request[SearchFor]) -> AsgiApp:
        text, limit = request.query.q.strip(), min(request.query.limit, MAX_HITS)
        hits = [] if not text else [one async for one in self._hits(request.tenant, text, limit)]
        return json_response(SearchResult(items=hits))

    async def _hits(self, tenant: str, text: str, limit: int) -> AsyncIterator[SearchHit]:
        scheduler = self._scheduler
        for saved in await scheduler.workflows.search(tenant, limit=limit, text=text):
            name = saved.name or saved.workflow_id
            yield SearchHit(kind="workflow", id=saved.workflow_id, label=name)
        wanted = RunFilter(text=text)
        for run in await scheduler.reader.search_runs(tenant, wanted, limit=limit):
            yield SearchHit(
                kind="run", id=run.run_id, label=run.name or run.run_id, detail=run.status
            )
        for one in self._known(tenant, text.lower(), limit):
            yield one

    def _known(self, tenant: str, text: str, limit: int) -> list[SearchHit]:
        """Of what is in memory."""
        scheduler = self._scheduler
        types: dict[str, SearchHit] = {}
        packages: dict[str, SearchHit] = {}
        for known in scheduler.catalogs.known(tenant):
            manifest = known.manifest
            if text in manifest.name.lower():
                packages[manifest.name] = SearchHit(
                    kind="package", id=manifest.name, label=manifest.name
                )
            for node in manifest.body.nodes:
                label = node.label or node.type
                if text in node.type.lower() or text in label.lower():
                    types[node.type] = SearchHit(
                        kind="node_type", id=node.type, label=label, detail=manifest.name
                    )
        workers = [
            SearchHit(kind="worker", id=one.worker_id, label=one.name, detail=one.status)
            for one in scheduler.workers.of_tenant(tenant)
            if text in one.name.lower() or text in one.worker_id.lower()
        ]
        found = (list(types.values()), list(packages.values()), workers)
        return [hit for hits in found for hit in hits[:limit]]
