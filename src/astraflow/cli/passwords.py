"""Passwords and tokens as input: from a prompt that does not show them, or from stdin, and never from an argument."""

from __future__ import annotations

import getpass
import sys

from astraflow.cli.inputs import unreadable


def read_password(prompt: str, *, is_new: bool = False) -> str:
    """The password that was typed, or the first line of stdin. `is_new`: it is typed twice.

    Raises: Refused: there is none, or the two differ.
    """
    if not sys.stdin.isatty():
        line = sys.stdin.readline().rstrip("\r\n")
        if not line:
            raise unreadable("No password on stdin", "type it at a terminal, or pipe it in")
        return line
    password = getpass.getpass(f"{prompt}: ")
    if is_new and getpass.getpass(f"{prompt} again: ") != password:
        raise unreadable("The two passwords differ", "type the same password twice")
    return password
