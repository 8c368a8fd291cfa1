"""The part of the effects that needs more than sessions: signed URLs, callers, catalogs, copies.

Rule 1: it runs after the commit. A URL is signed with the wall clock, which no decision may read.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from astraflow.core import errors
from astraflow.core.engine.effects import (
    Activated,
    AnswerCallback,
    CopyFailed,
    Effect,
    EndPush,
    LearnManifest,
    ReadList,
    ReplyToCaller,
    SendDispatch,
    SendExport,
    SendInstall,
    ShellEffect,
    StoreValue,
)
from astraflow.core.workflow import decode_manifest, validate_manifest

if TYPE_CHECKING:
    from astraflow.scheduler.blob_services import BlobServices
    from astraflow.scheduler.catalogs import Catalogs
    from astraflow.scheduler.pushes import TaskPushes
    from astraflow.scheduler.secret_vault import SecretVault
    from astraflow.scheduler.value_store import ValueStore

_log: Final = logging.getLogger(__name__)
_SIGNED: Final = frozenset({SendInstall, SendExport})


class ShellEffects:
    """Without blob services nothing is published, so that nothing needs a URL."""

    def __init__(
        self,
        catalogs: Catalogs,
        blobs: BlobServices | None = None,
        pushes: TaskPushes | None = None,
        vault: SecretVault | None = None,
        values: ValueStore | None = None,
    ) -> None:
        self._vault = vault
        self._values = values
        self._catalogs = catalogs
        self._pushes = pushes
        self._blobs = blobs

    def sign(self, effects: list[Effect]) -> None:
        """Add the URLs and the secrets that effects need, in place."""
        for place, effect in enumerate(effects):
            if isinstance(effect, SendDispatch):
                needs_url = bool(effect.copies)
                if effect.dispatch.secrets is not None and self._vault is not None:
                    effects[place] = effect = self._vault.fill(effect)
            else:
                needs_url = type(effect) in _SIGNED
            if needs_url:
                effects[place] = self._signed(effect)

    def _signed(self, effect: Effect) -> Effect:
        assert self._blobs is not None, "only what is published or copied needs a URL"
        copies, repository = self._blobs.copies, self._blobs.repository
        if isinstance(effect, SendInstall):
            url = repository.archive_url(effect.tenant, effect.package.name, effect.package.version)
            return msgspec.structs.replace(effect, url=url)
        if isinstance(effect, SendExport):
            return msgspec.structs.replace(effect, url=copies.upload_url(effect.resource))
        assert isinstance(effect, SendDispatch)
        refs = []
        for ref, copy in zip(effect.dispatch.resource_refs, effect.copies, strict=True):
            if copy is not None:
                url = copies.download_url(copy.key)[0]
                metadata = {"copyUrl": url, "metadata": msgspec.Raw(copy.metadata)}
                raw = msgspec.Raw(msgspec.json.encode(metadata))
                ref = msgspec.structs.replace(ref, metadata=raw)
            refs.append(ref)
        dispatch = msgspec.structs.replace(effect.dispatch, resource_refs=tuple(refs))
        return msgspec.structs.replace(effect, dispatch=dispatch)

    def perform(self, effect: ShellEffect) -> None:
        if isinstance(effect, ReplyToCaller):
            _reply(effect)
        elif isinstance(effect, LearnManifest):
            self._learn(effect.tenant, effect.manifest)
        elif isinstance(effect, CopyFailed):
            if self._blobs is not None:
                self._blobs.copies.give_up(effect.resource, effect.why)
        elif isinstance(effect, StoreValue):
            assert self._values is not None, "whoever runs maps stores what they collect"
            self._values.store(effect)
        elif isinstance(effect, ReadList):
            assert self._values is not None, "whoever runs maps reads their lists"
            self._values.read(effect)
        elif isinstance(effect, Activated):
            assert self._blobs is not None, "only what is published is activated"
            self._blobs.repository.note_active(effect.active)
        elif isinstance(effect, AnswerCallback):
            _answer(effect)
        elif isinstance(effect, SendDispatch):
            assert self._pushes is not None, "without pool services there are no pools"
            self._pushes.push(effect)
        elif isinstance(effect, EndPush):
            assert self._pushes is not None, "without pool services there are no pools"
            self._pushes.end(effect.task_id, effect.attempt)
        else:
            assert_never(effect)

    def _learn(self, tenant: str, raw: bytes) -> None:
        """A worker reports a package that it has. A manifest that cannot be read is ignored."""
        # Our own digest: a worker that lies about it would keep the true manifest of others out.
        digest = hashlib.sha256(raw).hexdigest()
        try:
            manifest = decode_manifest(raw)
            problems = validate_manifest(manifest)
            ignored = problems[0].message if problems else None
            name = manifest.name
        except errors.AstraflowError as error:
            ignored, name = error.message, "unreadable"
        else:
            ignored = ignored or self._catalogs.learn(tenant, digest, manifest)
        if ignored is not None:
            _log.info(
                "ignored a worker's manifest of %s: %s", name, ignored, extra={"tenant": tenant}
            )


def _answer(effect: AnswerCallback) -> None:
    future = effect.token
    assert isinstance(future, asyncio.Future)
    if future.done():
        return  # the caller has gone away
    if isinstance(effect.answer, errors.AstraflowError):
        future.set_exception(effect.answer)
    else:
        future.set_result(effect.answer)


def _reply(reply: ReplyToCaller) -> None:
    future = reply.token
    assert isinstance(future, asyncio.Future)
    if future.done():
        return  # the caller has gone away
    if reply.error is not None:
        future.set_exception(reply.error)
    else:
        future.set_result(reply.run_id)
