"""A handler that keeps what is logged."""

from __future__ import annotations

import logging

__all__ = ["KeptRecords"]


class KeptRecords(logging.Handler):
    """Appends every record to a list."""

    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)
