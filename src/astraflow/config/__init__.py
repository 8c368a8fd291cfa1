"""The settings of a process, where they come from, and the errors of wrong ones."""

from __future__ import annotations

from astraflow.config.loading import (
    CONFIG_FILE,
    Loaded,
    described,
    keep_secret,
    keep_token,
    load_scheduler,
    load_worker,
)
from astraflow.config.problems import ConfigError
from astraflow.config.secret import Secret
from astraflow.config.settings import (
    DEFAULT_DATA_DIR,
    SchedulerSettings,
    WorkerAuth,
    WorkerSettings,
)

__all__ = [
    "CONFIG_FILE",
    "DEFAULT_DATA_DIR",
    "ConfigError",
    "Loaded",
    "SchedulerSettings",
    "Secret",
    "WorkerAuth",
    "WorkerSettings",
    "described",
    "keep_secret",
    "keep_token",
    "load_scheduler",
    "load_worker",
]
