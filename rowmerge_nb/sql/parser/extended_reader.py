"""What the extended dialect's forms become: sentences for reports, and the statement in Trino's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.words import code
from rowmerge_nb.sql.parser.functions import FunctionReader
from rowmerge_nb.sql.parser.tokens import TokenKind
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Identifier, Span


class ExtendedReader(FunctionReader):
    """Records forms of the extended dialect, and parses what several statements share."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.forms: list[st.ExtendedForm] = []
        self.versions = ("old", "new")
        self.whole_in_trino = ""
        self._edits: list[tuple[int, int, str]] = []
        self._alias_edits: list[tuple[int, int, str]] | None = []
        self._has_words = True

    def form(
        self, message: str, span: Span, *edits: tuple[int, int, str], is_alias: bool = False
    ) -> None:
        """Record a form, once per sentence, and the edits of the text that put it in Trino's words."""
        if all(form.message != message for form in self.forms):
            self.forms.append(st.ExtendedForm(message, span, is_alias))
        self._edits += edits

    def without_words(self) -> None:
        """Record that Trino has no words for the statement, or that they need the table's columns."""
        self._has_words = False

    def in_trino(self, span: Span | None = None) -> str:
        """Return the text, or that of a span, in Trino's words; empty if there are none."""
        if not self._has_words or self._alias_edits is None:
            return ""
        start, end = (0, len(self.text)) if span is None else (span.start, span.end)
        parts = []
        for first, last, text in sorted([*self._alias_edits, *self._edits]):
            if start <= first and last <= end:
                gap = " " if text[-1:].isalnum() and self.text[last : last + 1].isalnum() else ""
                parts += [self.text[start:first], text, gap]
                start = last
        return "".join([*parts, self.text[start:end]]).strip()

    def described(self, statement: st.Statement) -> dict[str, Any]:
        """Return the fields of `Statement` about the extended dialect."""
        if not self.extended or not isinstance(
            statement, (st.Merge, st.Update, st.Delete, st.Insert)
        ):
            return {}
        words = self.whole_in_trino or (self.in_trino() if self._edits or self._alias_edits else "")
        return {
            "forms": tuple(self.forms),
            "in_trino": words if self._has_words else "",
            "versions": self.versions,
        }

    # -- shared parts

    def skip_word(self, *words: str) -> None:
        """Accept a word that other engines have, before a name."""
        token = self.token
        if (
            self.extended
            and token.kind is TokenKind.WORD
            and token.word in words
            and self.at_identifier(self.ahead())
        ):
            self.take()
            self.form(
                f"{token.word} is left out.", token.span, (token.span.start, token.span.end + 1, "")
            )

    def word_before_name(self, word: str) -> None:
        """Take INTO or FROM, which some engines do not need."""
        is_overwrite = self.token.word == "OVERWRITE" and self.ahead().text not in {".", "("}
        if self.extended and self.token.word != word and self.at_identifier() and not is_overwrite:
            at = self.token.span
            self.form(
                f"{self.text[: at.start].split()[-1].upper()} is"
                f" {self.text[: at.start].split()[-1].upper()} {word}.",
                at,
                (at.start, at.start, f"{word} "),
            )
            return
        self.expect(word)

    def accept_target_alias(self, target: st.TableName, *behind: str) -> Identifier | None:
        """Accept the alias of a target that has none in Trino; ``behind`` are the words after it."""
        if not self.extended:
            return None
        start, before = self.index, self.tokens[self.index - 1].span.end
        if self.accept("AS") or (self.at_identifier() and self.token.word not in behind):
            alias = self.identifier()
        else:
            return None
        span = self.span_from(start)
        name = self.text[target.span.start : target.span.end]
        self.form(
            f"Trino has no alias here: {alias.text} is the table {name}.",
            span,
            is_alias=True,
        )
        edits = self._unaliased(alias, target)
        self._alias_edits = None if edits is None else [(before, span.end, ""), *edits]
        return alias

    def drop_alias_edits(self) -> None:
        """Keep the target's alias, as in a MERGE."""
        self._alias_edits = []
        self.forms = [form for form in self.forms if not form.is_alias]

    def _unaliased(
        self, alias: Identifier, target: st.TableName
    ) -> list[tuple[int, int, str]] | None:
        """Return the edits that write the table's name for its alias; None if another relation
        could have either name.
        """
        edits = []
        own = target.parts[-1]
        for index in range(self.index, len(self.tokens) - 1):
            name = self.tokens[index].text.strip('"').lower()
            is_qualifier = self.tokens[index + 1].text == "."
            if name == own.value or (name == alias.value and not is_qualifier):
                return None
            if name == alias.value and self.tokens[index - 1].text != ".":
                span = self.tokens[index].span
                text = self.text[own.span.start : own.span.end]
                edits.append((span.start, span.end, text))
        return edits

    def skip_qualifier(self, target: st.TableName, alias: Identifier | None) -> None:
        """Accept the target's alias or name before a column that is assigned."""
        if not self.extended:
            return
        names = [alias.value] if alias is not None else [part.value for part in target.parts]
        for count in range(len(names), 0, -1):
            tokens = [self.ahead(index) for index in range(2 * count)]
            texts = [token.text.strip('"').lower() for token in tokens[::2]]
            if texts == names[-count:] and all(token.text == "." for token in tokens[1::2]):
                start = self.index
                for _ in tokens:
                    self.take()
                span = self.span_from(start)
                if self.at_identifier() and self.ahead().text != ".":
                    self.form(
                        "Trino names columns that get values without their table:"
                        f" {code(self.token.text)}.",
                        span,
                    )
                self._alias_edits = self._alias_edits and [
                    edit for edit in self._alias_edits if edit[0] != span.start
                ]
                self._edits.append((span.start, span.end, ""))
                return

    def assigned_columns(
        self, target: st.TableName, alias: Identifier | None
    ) -> tuple[Identifier, ...]:
        if not self.extended:
            return self.accept_columns()
        if not self.accept("("):
            return ()
        columns = []
        while True:
            self.skip_qualifier(target, alias)
            columns.append(self.identifier())
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(columns)

    def with_default(self, value: s.Expression) -> s.Expression:
        if (
            self.extended
            and isinstance(value, s.Name)
            and len(value.parts) == 1
            and value.span.of(self.text).upper() == "DEFAULT"
        ):
            self.form("DEFAULT is the default of its column, or NULL.", value.span)
            self.without_words()
            return s.Default(value.span)
        return value

    def assignments(
        self, target: st.TableName, alias: Identifier | None
    ) -> tuple[tuple[Identifier, ...], tuple[s.Expression, ...]]:
        """Parse ``column = value, ...``; the extended dialect has qualified columns, fields of rows,
        and lists of columns.
        """
        columns: list[Identifier] = []
        values: list[s.Expression] = []
        while True:
            if self.extended and self.token.text == "(":
                self._assign_list(target, alias, columns, values)
            else:
                self._assign(target, alias, columns, values)
            if not self.accept(","):
                return tuple(columns), tuple(values)

    def _assign(
        self,
        target: st.TableName,
        alias: Identifier | None,
        columns: list[Identifier],
        values: list[s.Expression],
    ) -> None:
        start = self.index
        self.skip_qualifier(target, alias)
        column = self.identifier()
        path: list[Identifier] = []
        while self.extended and self.accept("."):
            path.append(self.identifier())
        self.expect("=")
        value = self.with_default(self.expression())
        if not path:
            columns.append(column)
            values.append(value)
            return
        self.without_words()
        span = self.span_from(start)
        names = ".".join(part.text for part in (column, *path))
        self.form(
            f"{code(f'{names} = ...')} replaces column {column.text} by a row with the other fields"
            " as they were.",
            span,
        )
        pair = (tuple(path), value)
        for index, other in enumerate(columns):
            before = values[index]
            if other.value == column.value and isinstance(before, s.FieldValues):
                values[index] = s.FieldValues(before.span, before.column, (*before.fields, pair))
                return
        columns.append(column)
        values.append(s.FieldValues(span, column, (pair,)))

    def _assign_list(
        self,
        target: st.TableName,
        alias: Identifier | None,
        columns: list[Identifier],
        values: list[s.Expression],
    ) -> None:
        start = self.index
        names = self.assigned_columns(target, alias)
        self.expect("=")
        row = self.expression()
        items: tuple[s.Expression, ...]
        if isinstance(row, s.RowConstructor):
            items = tuple(map(self.with_default, row.items))
        elif isinstance(row, s.ScalarQuery) and len(names) > 1:
            self.without_words()
            items = tuple(
                s.Subscript(row.span, row, s.Literal(row.span, "integer", str(index)))
                for index in range(1, len(names) + 1)
            )
        else:
            items = (self.with_default(row),)
        span = self.span_from(start)
        if len(items) != len(names):
            self.error(
                f"{len(names)} columns are assigned {len(items)} values",
                span,
                "Write one for each.",
            )
        items_text = ", ".join(
            f"{name.text} = {self.in_trino(item.span) or item.span.of(self.text)}"
            for name, item in zip(names, items, strict=True)
        )
        if isinstance(row, s.ScalarQuery):
            self.form(
                "The columns of one list are assigned the columns of one subquery, each for itself.",
                span,
            )
        else:
            self._edits = [
                edit for edit in self._edits if not span.start <= edit[0] <= edit[1] <= span.end
            ]
            self.form(
                f"The list of columns is written as {code(items_text)}.",
                span,
                (span.start, span.end, items_text),
            )
        columns += names
        values += items

    def accept_returning(self) -> tuple[s.SelectItem | s.AllColumns, ...]:
        if not self.extended or not self.accept("RETURNING"):
            return ()
        self.without_words()
        if self.token.word == "WITH" and self.ahead().text == "(":
            self.take()
            self.take()
            names = dict(zip(("OLD", "NEW"), self.versions, strict=True))
            while True:
                word = self.expect("NEW", "OLD").word
                self.expect("AS")
                names[word] = self.identifier().value
                if not self.accept(","):
                    break
            self.expect(")")
            self.versions = (names["OLD"], names["NEW"])
        return self.select_items()
