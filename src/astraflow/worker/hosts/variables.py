"""The environment variables of the worker that package code gets.

This is an allow list of variables for paths, locale and network. The environment of a worker may contain any secret of
the machine, so a deny list would be incomplete. Operators add variables in `host_environment`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

_NAMES: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL"),
        *("LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "LD_LIBRARY_PATH", "MALLOC_ARENA_MAX"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
        *("CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("DISPLAY", "WAYLAND_DISPLAY"),
        *("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
        *("FONTCONFIG_FILE", "FONTCONFIG_PATH"),
        *("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES"),
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
        *("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
        *("HF_HOME", "HF_HUB_OFFLINE", "TORCH_HOME", "PLAYWRIGHT_BROWSERS_PATH", "ASTRA_CHROMIUM"),
    }
)
_PREFIX: Final = "LC_"
_NEVER: Final = ("ASTRA_SCHEDULER_", "ASTRA_WORKER_")
"""Our own settings, tokens among them: not even by mistake."""


def passed_on(environ: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The variables that a host gets, with those that the operator names."""
    return {
        name: text
        for name, text in environ.items()
        if name in _NAMES
        or name.startswith(_PREFIX)
        or (name in more and not name.startswith(_NEVER))
    }
