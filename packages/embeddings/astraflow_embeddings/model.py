"""all-MiniLM-L6-v2: six layers of attention over word pieces, the mean of their last states, of length one.

The forward pass is written in numpy: the model is small, and a framework for it would weigh twenty times as much as
the model itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

__all__ = ["MiniLm"]

EPSILON = 1e-12
MAX_PIECES = 256
"""What the model was trained on; more of a text is not read."""

Array = np.ndarray[Any, Any]


class MiniLm:
    """The model in memory. `embed` may be called from several threads."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self.dimension: int = config["hidden_size"]
        self._heads: int = config["num_attention_heads"]
        self._layers: int = config["num_hidden_layers"]
        self._weights: dict[str, Array] = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_PIECES)
        self._tokenizer.enable_padding()

    @property
    def size_bytes(self) -> int:
        return sum(weight.nbytes for weight in self._weights.values())

    def embed(self, texts: list[str]) -> Array:
        """A row of length one for each text."""
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in encoded])
        mask = np.array([one.attention_mask for one in encoded], dtype=np.float32)
        states = self._embeddings(ids)
        hidden = (1.0 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in range(self._layers):
            states = self._layer(f"encoder.layer.{layer}", states, hidden)
        summed = (states * mask[:, :, None]).sum(axis=1)
        mean = summed / np.maximum(mask.sum(axis=1, keepdims=True), EPSILON)
        return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), EPSILON)

    def _embeddings(self, ids: Array) -> Array:
        words = self._weights["embeddings.word_embeddings.weight"][ids]
        places = self._weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        return self._norm("embeddings.LayerNorm", words + places + kind)

    def _layer(self, name: str, states: Array, hidden: Array) -> Array:
        attended = self._linear(
            f"{name}.attention.output.dense", self._attend(name, states, hidden)
        )
        states = self._norm(f"{name}.attention.output.LayerNorm", states + attended)
        inner = _gelu(self._linear(f"{name}.intermediate.dense", states))
        outer = self._linear(f"{name}.output.dense", inner)
        return self._norm(f"{name}.output.LayerNorm", states + outer)

    def _attend(self, name: str, states: Array, hidden: Array) -> Array:
        query, key, value = (
            self._split(self._linear(f"{name}.attention.self.{part}", states))
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(np.float32(query.shape[-1])) + hidden
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares = scores / scores.sum(axis=-1, keepdims=True)
        joined = (shares @ value).transpose(0, 2, 1, 3)
        return joined.reshape(states.shape)

    def _split(self, states: Array) -> Array:
        """Batch, heads, pieces, share of the dimension."""
        batch, pieces, _ = states.shape
        return states.reshape(batch, pieces, self._heads, -1).transpose(0, 2, 1, 3)

    def _linear(self, name: str, states: Array) -> Array:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, name: str, states: Array) -> Array:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(values: Array) -> Array:
    """By the error function, as the model was trained; numpy has none, so it is written as a series of Abramowitz."""
    halved = values / np.float32(np.sqrt(2.0))
    sign, size = np.sign(halved), np.abs(halved)
    t = 1.0 / (1.0 + np.float32(0.3275911) * size)
    series = t * (
        0.254829592
        + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * np.float32(1.061405429))))
    )
    error = sign * (1.0 - series * np.exp(-size * size))
    return (0.5 * values * (1.0 + error)).astype(np.float32)
