"""What the compiler is told beside the types.

`@mypyc_attr(allow_interpreted_subclasses=True)`: modules that are not compiled, or tests, have a subclass of the class.
Without it no object of such a subclass can be made when the class is compiled. It means nothing to Python itself, and
nothing is imported for it (docs/adr/0037-a-compiled-core.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_):
        return lambda made: made


__all__ = ["mypyc_attr"]
