"""The health check of the image: does the scheduler of this container answer `GET /healthz`?

Only a scheduler listens. In a container with another role the process itself is the answer: it lives, or the container
has ended.
"""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request
from pathlib import Path

TIMEOUT_S = 4.0


def main(command_line: Path) -> int:
    """`command_line`: the file with the command of the container's first process, its words ended by zero bytes."""
    if b"server" not in command_line.read_bytes().split(b"\0"):
        return 0
    port = os.environ.get("ASTRA_SCHEDULER_PORT", "8080")
    scheme, context = "http", None
    if os.environ.get("ASTRA_SCHEDULER_TLS_CERT_FILE"):
        # The certificate is for the name that others use. Whether the process answers is all that is asked here.
        scheme, context = "https", ssl._create_unverified_context()  # noqa: S323
    try:
        urllib.request.urlopen(  # noqa: S310 - the address is this machine's own
            f"{scheme}://127.0.0.1:{port}/healthz", timeout=TIMEOUT_S, context=context
        ).close()
    except OSError as error:
        sys.stderr.write(f"the scheduler does not answer: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "/proc/1/cmdline")))
