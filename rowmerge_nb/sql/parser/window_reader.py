"""Parses windows, frames and ORDER BY."""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.parser.literals import SimpleReader
from rowmerge_nb.sql.tree import syntax as s

_BOUNDS: Final = {"UNBOUNDED": {"FOLLOWING", "PRECEDING"}, "CURRENT": {"ROW"}}


class WindowReader(SimpleReader):
    def expression(self) -> s.Expression:
        raise NotImplementedError

    def expressions(self) -> tuple[s.Expression, ...]:
        items = [self.expression()]
        while self.accept(","):
            items.append(self.expression())
        return tuple(items)

    def over(self) -> s.Window | None:
        if not self.over_follows(0):
            return None
        start = self.index
        self.take()
        if self.token.word != "(":
            name = self.identifier()
            return s.Window(self.span_from(start), (), (), None, name)
        return self.window_specification(start)

    def over_follows(self, count: int) -> bool:
        following = self.ahead(count + 1)
        return self.ahead(count).word == "OVER" and (
            following.word == "(" or self.at_identifier(following)
        )

    def window_specification(self, start: int) -> s.Window:
        self.expect("(")
        name = None
        is_name = self.token.word == "PARTITION" and self.ahead().word != "BY"
        if is_name:
            # PARTITION may be the name of a window, unless BY follows.
            self.index += 1
            self.note("'BY'")
            self.index -= 1
        if is_name or not self.at("GROUPS", "ORDER", "PARTITION", "RANGE", "ROWS"):
            self.note("'MEASURES'", "<identifier>")
            name = self.identifier() if self.at_identifier() else None
        partition_by: tuple[s.Expression, ...] = ()
        if self.accept("PARTITION"):
            self.expect("BY")
            partition_by = self.expressions()
        order_by = self.accept_order_by()
        self.note("'MEASURES'")
        frame = self._frame() if self.at("RANGE", "ROWS", "GROUPS") else None
        if frame is not None:
            self.note("'AFTER'", "'DEFINE'", "'INITIAL'", "'PATTERN'", "'SEEK'", "'SUBSET'")
        self.close(")")
        return s.Window(self.span_from(start), partition_by, order_by, frame, name)

    def _frame(self) -> s.WindowFrame:
        start = self.index
        unit = self.take().word
        high = None
        if self.accept("BETWEEN"):
            low = self._bound()
            self.expect("AND")
            high = self._bound()
        else:
            low = self._bound()
        return s.WindowFrame(self.span_from(start), unit, low, high)

    def _bound(self) -> s.FrameBound:
        start = self.index
        offset = None
        word, following = self.token.word, self.ahead().word
        if self.at("UNBOUNDED", "CURRENT") and following in _BOUNDS[word]:
            self.take()
            side = self.take().word
        else:
            # Neither word is reserved.
            is_word = word in _BOUNDS
            self.undecided += is_word
            offset = self.expression()
            self.undecided -= is_word
            if word == "CURRENT" and self.index == start + 1:
                self.note("'ROW'")
            side = self.expect("FOLLOWING", "PRECEDING").word
        return s.FrameBound(self.span_from(start), side, offset)

    def accept_order_by(self) -> tuple[s.SortItem, ...]:
        if not self.accept_all("ORDER", "BY"):
            return ()
        items = [self._sort_item()]
        while self.accept(","):
            items.append(self._sort_item())
        return tuple(items)

    def _sort_item(self) -> s.SortItem:
        start = self.index
        value = self.expression()
        direction = self.accept("ASC", "DESC")
        nulls = self.expect("FIRST", "LAST") if self.accept("NULLS") else None
        descending = direction is not None and direction.word == "DESC"
        return s.SortItem(
            self.span_from(start), value, descending, nulls is not None and nulls.word == "FIRST"
        )
