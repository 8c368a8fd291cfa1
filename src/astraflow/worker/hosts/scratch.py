"""Scratch folders: one for each attempt, below the folder of its host.

Rule 1: an attempt has a folder of its own (`ctx.data_dir`), which is created when its handler first uses it and
        removed when the attempt ends. Registered files have been moved out by then.
Rule 2: a host has a folder of its own, its working directory, for the files of its objects. It goes with the host.
Rule 3: folders of an earlier boot are removed.

A folder is removed by a rename into `trash`, which a thread deletes: the loop never waits for a large tree.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

DATA_FOLDER: Final = "data"
"""Below the worker's folder: everything that handlers write and do not register."""
TRASH: Final = "trash"


class Scratch:
    """The folders below `<folder>/data`."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.absolute() / DATA_FOLDER
        self._trash = self.root / TRASH
        self._deleting: set[asyncio.Future[None]] = set()

    def clear(self) -> None:
        """Remove what an earlier boot has left. Its hosts are dead."""
        shutil.rmtree(self.root, ignore_errors=True)

    def make_host_folder(self, mark: str) -> Path:
        """Raises OSError when there is no room."""
        made = self.root / mark
        made.mkdir(parents=True, mode=0o700)
        return made

    def discard(self, folder: Path | str) -> None:
        """Remove the folder of an attempt or a host that has ended, whatever has become of it."""
        try:
            os.rmdir(folder)  # most attempts have none, or leave it empty
        except FileNotFoundError:
            return
        except OSError:
            self._delete_later(Path(folder))

    def _delete_later(self, folder: Path) -> None:
        doomed = self._trash / secrets.token_hex(8)
        try:
            self._trash.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.rename(folder, doomed)
        except OSError:
            doomed = folder  # no room for a name: it is deleted where it is
        future = asyncio.get_running_loop().run_in_executor(None, _delete, doomed)
        self._deleting.add(future)
        future.add_done_callback(self._deleting.discard)

    async def wait_deleted(self) -> None:
        """Wait until all that was discarded is deleted."""
        await asyncio.gather(*self._deleting)


def _delete(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def size_of(folder: Path) -> int:
    """The bytes on disk of everything in a folder. It may take a while: call it in a thread."""
    total = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            # What goes meanwhile counts for nothing.
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(inside, name)).st_blocks * 512
    return total
