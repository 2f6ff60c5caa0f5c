"""The grammar of SHOW and DESCRIBE."""

from __future__ import annotations

from typing import Final, NoReturn

from rowmerge_nb.sql.parser.definition_reader import WITHOUT_PATH, DefinitionReader
from rowmerge_nb.sql.session_properties import SESSION_HINT
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s

_ACCESS: Final = ("CURRENT", "GRANTS", "ROLE", "ROLES")
"""Objects of SHOW that are refused: roles and privileges."""
_NO_STATISTICS: Final = "SELECT count(*), min(x), max(x) FROM t computes such numbers."


class ShowReader(DefinitionReader):
    """Parses SHOW and DESCRIBE."""

    def _describe(self) -> st.Show | st.DescribePrepared:
        if self.at_prepared_description():
            self.take()
            output = self.take().word == "OUTPUT"
            return st.DescribePrepared(*self.whole(), self.identifier(), output)
        if self.take().word == "DESCRIBE":
            self.note("'INPUT'", "'OUTPUT'")
        return st.Show(*self.whole(), "COLUMNS", self.table_name())

    def at_prepared_description(self) -> bool:
        """Return whether DESCRIBE INPUT or OUTPUT begins here; these can be table names."""
        return (
            self.token.word == "DESCRIBE"
            and self.ahead().word in {"INPUT", "OUTPUT"}
            and self.at_identifier(self.ahead(2))
        )

    def _show(self) -> st.Statement:
        start = self.index
        self.take()
        if self.at(*_ACCESS):
            self._show_roles(start)
        shown_kind = self.expect(
            "BRANCHES",
            "CATALOGS",
            "COLUMNS",
            "CREATE",
            "FUNCTIONS",
            "SCHEMAS",
            "SESSION",
            "STATS",
            "TABLES",
        ).word
        if shown_kind == "BRANCHES":
            self.expect("FROM", "IN")
            self.expect("TABLE")
            return st.Show(*self.whole(), shown_kind, self.table_name())
        if shown_kind == "SESSION":
            self._refuse_later(start, hint=SESSION_HINT)
        if shown_kind == "STATS":
            self._refuse_statistics(start)
        if shown_kind == "CREATE":
            if self.accept("FUNCTION"):
                function = self.table_name()
                self.expect_end()
                function_name = ".".join(part.value for part in function.parts)
                message = (
                    WITHOUT_PATH
                    if len(function.parts) == 1
                    else f"Function '{function_name}' not found"
                )
                self._refuse_now(start, message, "SHOW CREATE FUNCTION")
            if self.at("MATERIALIZED"):
                self.take()
                self._refuse_materialized(start)
                self.expect("VIEW")
                self.table_name()
                self._refuse_read()
            shown_kind = f"CREATE {self.expect('SCHEMA', 'TABLE', 'VIEW').word}"
            return st.Show(*self.whole(), shown_kind, self.table_name())
        name = None
        if shown_kind == "COLUMNS":
            self.expect("FROM", "IN")
            name = self.table_name()
        elif shown_kind not in {"CATALOGS", "SESSION"} and self.accept("FROM", "IN"):
            name = self._catalog_name() if shown_kind == "SCHEMAS" else self.table_name()
        like = self._pattern() if self.accept("LIKE") else None
        escape = self._pattern() if like is not None and self.accept("ESCAPE") else None
        return st.Show(*self.whole(), shown_kind, name, like, escape)

    def _catalog_name(self) -> st.TableName:
        name = self.identifier()
        return st.TableName((name,), name.span)

    def _refuse_statistics(self, start: int) -> NoReturn:
        self._refuse_later(start, hint=_NO_STATISTICS)
        self.expect("FOR")
        if self.accept("("):
            self.note("'WITH'")
            self.query()
            self.close(")")
        else:
            self.table_name()
        self._refuse_read()

    def _pattern(self) -> s.Literal:
        span = self.token.span
        return s.Literal(span, "string", self._text())
