"""Lists: fetched page by page, and with `--json` printed exactly as the server sent them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
import typer

from astraflow.cli.output import Row, show_json, show_table
from astraflow.client.blocking import Client
from astraflow.client.requests import ApiRequest
from astraflow.core.contract.base import Page

PAGE: Final = 200
"""The server's maximum page size."""

Limit = Annotated[int, typer.Option(min=0, help="Maximum number of rows; 0 for all")]
Cursor = Annotated[
    str | None, typer.Option(help="Continue after this `nextCursor` of an earlier response")
]
Item = TypeVar("Item")

_page: Final = msgspec.json.Decoder(type=dict[str, msgspec.Raw])
_items: Final = msgspec.json.Decoder(type=list[msgspec.Raw])


class _Pages:
    """The rows of a list; `next_cursor` continues after the last row."""

    def __init__(
        self, client: Client, ask: Callable[..., ApiRequest[Page[Any]]], cursor: str | None
    ) -> None:
        self._client = client
        self._ask = ask
        self.next_cursor = cursor

    def rows(self, limit: int) -> Iterator[msgspec.Raw]:
        left = limit
        while True:
            count = min(left, PAGE) if limit else PAGE
            call = self._ask(limit=count, cursor=self.next_cursor)
            page = _page.decode(self._client.perform(call.raw()))
            items = _items.decode(page["items"])
            self.next_cursor = msgspec.json.decode(page["nextCursor"])
            yield from items
            left -= len(items)
            if self.next_cursor is None or (limit and left <= 0):
                return


def show_list(
    ask: Callable[..., ApiRequest[Page[Item]]],
    *,
    kind: type[Item],
    columns: Sequence[str],
    row: Callable[[Item], Row],
    limit: int,
    cursor: str | None,
    as_json: bool,
    empty: str,
) -> None:
    """Print a list. `ask` makes the request of a page from its `limit` and `cursor`."""
    with Client() as client:
        pages = _Pages(client, ask, cursor)
        if as_json:
            items = list(pages.rows(limit))
            show_json({"items": items, "nextCursor": pages.next_cursor})
            return
        decoder = msgspec.json.Decoder(kind)
        show_table(columns, (row(decoder.decode(raw)) for raw in pages.rows(limit)), empty=empty)
    if pages.next_cursor is not None:
        from astraflow.cli.exit_codes import note

        note(
            f"\nhint: there are more rows; `--limit 0` shows all, `--cursor {pages.next_cursor}` the next page"
        )
