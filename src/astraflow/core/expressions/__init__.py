"""The language of expressions in workflows: parsed, checked and evaluated, without I/O."""

from __future__ import annotations

from astraflow.core.expressions.budget import ExpressionError
from astraflow.core.expressions.language import Expression, Reference, compile_expression

__all__ = ["Expression", "ExpressionError", "Reference", "compile_expression"]
