"""Groups of commands, and fast argument parsing: typer's validation is bypassed for values that need no conversion.

typer validates every value with pydantic, whose import takes as long as the rest of `astra runs list`. Most values are
text and need no validation; typer still validates the others and reports their errors.
"""

from __future__ import annotations

from pathlib import Path
from types import NoneType
from typing import Any, get_args

import typer


def command_group(says: str) -> typer.Typer:
    """A group of commands with this help text."""
    return typer.Typer(help=says, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def spare(command: Any) -> None:
    """Bypass validation of simple values for a command and its sub-commands."""
    for parameter in command.params:
        _lighten(parameter)
    make_help = command.get_help_option

    def help_option(ctx: Any) -> Any:
        option = make_help(ctx)
        _lighten(option)
        return option

    command.get_help_option = help_option
    for below in getattr(command, "commands", {}).values():
        spare(below)


def _lighten(parameter: Any) -> None:
    # A private attribute of typer: None until the parameter is used. Without it, typer validates as usual.
    if getattr(parameter, "_runtime_param", parameter) is None:
        parameter._runtime_param = _AsItIs(parameter.type_descriptor)


class _AsItIs:
    def __init__(self, descriptor: Any) -> None:
        annotation = descriptor.annotation
        kinds = set(get_args(annotation)) - {NoneType} if get_args(annotation) else {annotation}
        self._kind = kinds.pop() if len(kinds) == 1 else None
        info = descriptor.parameter_info
        self._is_bounded = info.min is not None or info.max is not None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        simple = self._simple(value, param)
        if simple is not _NOT_SIMPLE:
            return simple
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)

    def _simple(self, value: Any, param: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if not isinstance(self._kind, type):
            return _NOT_SIMPLE
        if isinstance(value, self._kind) and not isinstance(value, list | tuple):
            return value if not self._is_bounded or value == param.default else _NOT_SIMPLE
        if self._kind is Path and isinstance(value, str):
            return Path(value)
        if self._kind is int and not self._is_bounded and _is_number(value):
            return int(value)
        return _NOT_SIMPLE


_NOT_SIMPLE = object()


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdecimal()
