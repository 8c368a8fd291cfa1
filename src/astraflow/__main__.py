"""`python -m astraflow` is `astra`."""

from __future__ import annotations

from astraflow.cli.main import main

if __name__ == "__main__":
    main()
