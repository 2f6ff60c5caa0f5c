"""The grammar of statements on tables, views and schemas."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.errors import AnalysisError, Edit, Hint, ParseError
from rowmerge_nb.spi.alterations import CreateBranch, DropBranch, FastForwardBranch
from rowmerge_nb.sql.functions.foreign_names import type_hint
from rowmerge_nb.sql.parser.access import NO_USERS, AccessReader
from rowmerge_nb.sql.parser.literals import STRINGS
from rowmerge_nb.sql.parser.token_reader import PRIMARY_KEY
from rowmerge_nb.sql.parser.tokens import NUMBERS
from rowmerge_nb.sql.parser.type_names import read_type
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted_type

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type

_CREATED: Final = ("BRANCH", "CATALOG", "FUNCTION", "MATERIALIZED", "ROLE", "SCHEMA", "VIEW")
"""Other objects of CREATE and DROP than tables."""
_NOT_ALTERED: Final = frozenset({"MATERIALIZED", "SCHEMA", "VIEW"})
"""Other objects of ALTER than tables."""
_NOT_MATERIALIZED: Final = (
    "Write CREATE VIEW to store a query, or CREATE TABLE AS to store its present rows."
)
_INSTEAD: Final[dict[str, str]] = {
    "SHOW CREATE FUNCTION": "There are no functions but those of docs/functions.md.",
    "CREATE CATALOG": "Engine.add_catalog(name, connector) adds one.",
    "DROP CATALOG": "An engine keeps its catalogs: make another Engine without it.",
    "CREATE FUNCTION": (
        "WITH FUNCTION f(x integer) RETURNS integer RETURN x + 1 in front of a query defines it for"
        " that statement."
    ),
    "DROP FUNCTION": "There are no functions but those of docs/functions.md: leave it out.",
}
"""Alternatives to refused statements, by their first words."""

WITHOUT_PATH: Final = "Catalog and schema must be specified when function schema is not configured"

_CONSTANTS: Final[dict[str, Any]] = {
    "string": str,
    "integer": int,
    "decimal": float,
    "double": float,
    "boolean": lambda text: text == "true",
}


class DefinitionReader(AccessReader):
    """Parses CREATE, DROP, ALTER, COMMENT, TRUNCATE and CALL."""

    def _refuse_statement(self, message: str, hint: str | None = None) -> NoReturn:
        raise ParseError.unsupported(message, hint=hint).at(self.token.span, len(self.token.text))

    def _refuse_clause(self, statement: str) -> None:
        self.refused(
            ParseError.unsupported(
                f"{self.token.word} of {statement} is not supported by this engine",
                hint="Leave it out.",
            ).at(self.token.span)
        )

    def _second(self, first: str, *words: str) -> None:
        """Take a second word; Trino reports a wrong one at the first, which could be a dotted name."""
        if self.token.word not in words:
            self.restart()
            self.note("'.'", f"'{first}'")
            self.fail()
        self.take()

    # -- tables

    def _create(self) -> st.Statement:
        start = self.index
        self.take()
        if self.token.word == "ROLE":
            self._create_role(start)
        self.note(*(f"'{word}'" for word in (*_CREATED, "OR")))
        or_replace = self.accept_all("OR", "REPLACE")
        if or_replace:
            self.note("'BRANCH'", "'FUNCTION'", "'MATERIALIZED'", "'TABLE'")
        if self.token.word == "BRANCH":
            return self._create_branch(or_replace=or_replace)
        if self.token.word == "FUNCTION" or (self.token.word == "CATALOG" and not or_replace):
            self._create_elsewhere(start)
        if self.token.word == "MATERIALIZED":
            self._create_materialized(start)
        if self.at("VIEW") or (or_replace and not self.at("TABLE")):
            return self._create_view(replace=or_replace)
        if self.accept("SCHEMA"):
            return self._create_schema()
        self.expect("TABLE")
        return replace(self._create_table(), replace=or_replace)

    def _create_branch(self, *, or_replace: bool) -> st.AlterTable:
        self.take()
        exists = self.token.word == "IF" and self.ahead().word == "NOT"
        if exists:
            self.accept_all("IF", "NOT", "EXISTS")
        branch = self.identifier().value
        self._properties("branch")
        self.expect("IN")
        word, table = self._table_of_branch()
        origin = self.identifier().value if self.accept("FROM") else None
        change = CreateBranch(branch, origin, or_replace, exists)
        return self._branch_statement(table, change, word)

    def _drop_branch(self) -> st.AlterTable:
        self.take()
        exists = self.token.word == "IF" and self.ahead().word == "EXISTS"
        if exists:
            self.accept_all("IF", "EXISTS")
        branch = self.identifier().value
        self.expect("IN")
        word, table = self._table_of_branch()
        return self._branch_statement(table, DropBranch(branch, exists), word)

    def _alter_branch(self, branch: str) -> st.AlterTable:
        word, table = self._table_of_branch()
        for expected in ("FAST", "FORWARD", "TO"):
            self.expect(expected)
        change = FastForwardBranch(branch, self.identifier().value)
        return self._branch_statement(table, change, word)

    def _table_of_branch(self) -> tuple[st.Span, st.TableName]:
        word = self.expect("TABLE").span
        return word, self.table_name()

    def _branch_statement(
        self,
        table: st.TableName,
        change: CreateBranch | DropBranch | FastForwardBranch,
        word: st.Span,
    ) -> st.AlterTable:
        return st.AlterTable(*self.whole(), table, False, st.BranchAction(change), word)

    def _create_table(self) -> st.CreateTable:
        if_not_exists = self.token.word == "IF" and self.ahead().word == "NOT"
        if if_not_exists:
            self.take()
            self.take()
            self.expect("EXISTS")
        else:
            self.note("'IF'")
        named_if = self.token.word == "IF"
        name = self.table_name()
        if named_if:
            self.note("'NOT'")
        aliases, columns = self._create_columns()
        comment = self._comment()
        properties, spans = self._properties()
        if columns or not (aliases or self.at("AS")):
            if not columns:
                self.fail()
            return st.CreateTable(
                *self.whole(),
                name,
                columns,
                (),
                properties,
                if_not_exists,
                None,
                True,
                spans,
                comment,
            )
        self.close("AS")
        statement = self._create_as(name, aliases, if_not_exists)
        return replace(statement, properties=properties, property_spans=spans, comment=comment)

    def _create_as(
        self, name: st.TableName, aliases: tuple[st.Identifier, ...], if_not_exists: bool
    ) -> st.CreateTable:
        self.note("'('", "'WITH'")
        tree = self.query_of_statement()
        with_data = True
        if self.accept("WITH"):
            with_data = self.accept("NO") is None
            self.expect("DATA")
        query = st.Query(*self.whole(), tree)
        return st.CreateTable(*self.whole(), name, (), aliases, {}, if_not_exists, query, with_data)

    def _create_columns(
        self,
    ) -> tuple[tuple[st.Identifier, ...], tuple[st.ColumnDefinition | st.LikeTable, ...]]:
        if not self.accept("("):
            return (), ()
        if self.at_identifier() and self.ahead().word in {",", ")"}:
            aliases = self.identifiers()
            self.expect(")")
            return aliases, ()
        columns = [self._element("')'", "','", "'.'")]
        self._behind_element(columns[0])
        while self.accept(","):
            columns.append(self._element())
            self._behind_element(columns[-1])
        self.expect(")")
        return (), tuple(columns)

    def _behind_element(self, column: st.ColumnDefinition | st.LikeTable) -> None:
        # TIME may be followed by a zone.
        base_type = (
            None
            if isinstance(column, st.LikeTable) or isinstance(column.type, AnalysisError)
            else column.type.base
        )
        if base_type not in {"time", "timestamp"}:
            self.restart()

    def _element(self, *behind_name: str) -> st.ColumnDefinition | st.LikeTable:
        like = self.accept("LIKE")
        if like is None:
            return self._column(*behind_name)[0]
        name = self.table_name()
        option = self.accept("EXCLUDING", "INCLUDING")
        if option is not None:
            self.expect("PROPERTIES")
        return st.LikeTable(like.span, name, option is not None and option.word == "INCLUDING")

    def _column(
        self, *behind_name: str, added: bool = False
    ) -> tuple[st.ColumnDefinition, tuple[st.Identifier, ...]]:
        *within, name = self._path()
        if added or not behind_name:
            self.restart()
        self.note(*behind_name)
        type_name = self.type_name()
        hint = (
            PRIMARY_KEY
            if (name.text.upper(), type_name.text[:3].upper()) == ("PRIMARY", "KEY")
            else None
        )
        first = within[0] if within else name
        column_type = self._type_of_column(first, type_name, first.span, hint)
        default = self.literal() if self.accept("DEFAULT") else None
        nullable = True
        if self.accept("NOT"):
            self.expect("NULL")
            nullable = False
        comment = self._comment()
        if added and self.at("WITH"):
            self._refuse_clause("ALTER TABLE")
            self._properties()
        if within and not added:
            column_type = AnalysisError.unsupported(
                f"Column name '{'.'.join(part.text for part in (*within, name))}' must not be"
                " qualified",
                hint="Write the name alone.",
            ).at(st.Span(0, 1, 1, 1, first.span))
        return st.ColumnDefinition(name, column_type, nullable, comment, default), tuple(within)

    def _type_of_column(
        self,
        column: st.Identifier,
        type_name: s.TypeName,
        name_span: st.Span,
        hint: Hint | None = None,
    ) -> Type | AnalysisError:
        message = f"Unknown type '{formatted_type(type_name.text)}' for column '{column.text}'"
        code = "COLUMN_TYPE_UNKNOWN"
        try:
            column_type = read_type(type_name)
            if "number" in re.findall(r"\w+", str(column_type)):
                return AnalysisError.unsupported(
                    f"Unsupported column type: {column_type} of column '{column.text}'",
                    hint="Write decimal(38, 10), or another decimal that holds the values.",
                ).at(name_span)
            if column_type.base != "unknown":
                return column_type
            hint = "A column needs a type that can hold values."
        except AnalysisError as error:
            if error.code != "TYPE_MISMATCH":
                return error
            code = "TYPE_NOT_FOUND"
            edit = type_hint(type_name.text)
            if edit is not None:
                column_text = self.text[name_span.start : type_name.span.start]
                old = type_name.span.of(self.text)
                new = re.sub(rf"(?i)\b{re.escape(edit.old or '')}", edit.new, old, count=1)
                hint = Edit(f"{column_text}{old}", f"{column_text}{new}", str(edit))
        return AnalysisError(message, code=code, hint=hint).at(name_span)

    def _comment(self) -> st.Comment | None:
        start = self.token.span
        return st.Comment(self._text(), start) if self.accept("COMMENT") else None

    def _text(self) -> str:
        self.note("<string>")
        if self.token.kind not in STRINGS:
            self.fail()
        return self.string()

    def _comment_on(self) -> st.CommentOn:
        self.take()
        self.expect("ON")
        object_word = self.expect("COLUMN", "TABLE", "VIEW").word
        name = self.table_name()
        column = None
        if object_word == "COLUMN":
            if len(name.parts) == 1:
                error = AnalysisError(
                    "Table must be specified", code="MISSING_TABLE", hint="Write table.column."
                )
                self.refused(error.at(name.span))
            column, name = name.parts[-1], replace(name, parts=name.parts[:-1])
        self.expect("IS")
        comment = None if self.accept("NULL") else self._text()
        return st.CommentOn(*self.whole(), object_word, name, column, comment)

    def _properties(self, object_kind: str = "table") -> tuple[dict[str, Any], dict[str, st.Span]]:
        if not self.accept("WITH"):
            return {}, {}
        self.expect("(")
        assigned = self._assigned_properties(object_kind)
        self.close(")")
        return assigned

    def _assigned_properties(
        self, object_kind: str = "table"
    ) -> tuple[dict[str, Any], dict[str, st.Span]]:
        """Parse ``name = value, ...`` as values and the places of names; None for DEFAULT, an error
        if not constant.
        """
        properties: dict[str, Any] = {}
        spans: dict[str, st.Span] = {}
        while True:
            name = self.identifier()
            self.expect("=")
            if name.value in properties:
                self.error(f"Duplicate property: {name.value}", name.span)
            spans[name.value] = name.span
            value = None if self.accept("DEFAULT") else self.expression()
            try:
                properties[name.value] = None if value is None else self._property_value(value)
            except ValueError as error:
                message = f"Invalid value for {object_kind} property '{name.value}': {error}"
                code = f"INVALID_{object_kind.upper()}_PROPERTY"
                properties[name.value] = AnalysisError(
                    message, code=code, hint="Give a constant."
                ).at(name.span)
            if not self.accept(","):
                return properties, spans

    def _property_value(self, value: s.Expression) -> Any:
        """Return a constant; a bare word (``paradigm = DELETE_ROW_...``) is text."""
        if isinstance(value, s.Name) and len(value.parts) == 1:
            return value.parts[0].text
        if isinstance(value, s.ArrayConstructor):
            return tuple(self._property_value(item) for item in value.items)
        if isinstance(value, s.FunctionCall) and value.name.lower() == "map":
            match [self._property_value(array) for array in value.arguments]:
                case [tuple(keys), tuple(values)] if len(keys) == len(values) and all(
                    isinstance(key, str) for key in keys
                ):
                    return dict(zip(keys, values, strict=True))
        if (
            isinstance(value, s.Unary)
            and isinstance(value.operand, s.Literal)
            and value.operand.kind in NUMBERS
        ):
            number = self._property_value(value.operand)
            return -number if value.operator == "-" else number
        if isinstance(value, s.Literal) and value.kind in _CONSTANTS:
            return _CONSTANTS[value.kind](value.value)
        raise ValueError(
            f"{' '.join(value.span.of(self.text).split())} is neither a constant nor an ARRAY of"
            " constants"
        )

    def _drop(self) -> st.Statement:
        start = self.index
        self.take()
        if self.token.word == "BRANCH":
            return self._drop_branch()
        if self.token.word in {"CATALOG", "FUNCTION"}:
            self._drop_elsewhere(start)
        if self.token.word == "ROLE":
            self._drop_role(start)
        self.note(*(f"'{word}'" for word in _CREATED))
        materialized = self.token.word == "MATERIALIZED"
        if materialized:
            self.take()
            self._refuse_materialized(start)
        what = self.expect(*(() if materialized else ("SCHEMA", "TABLE")), "VIEW").word
        if_exists = self.token.word == "IF" and self.ahead().word == "EXISTS"
        if if_exists:
            self.take()
            self.take()
        else:
            self.note("'IF'")
        name = self.table_name()
        if what == "TABLE":
            return st.DropTable(*self.whole(), name, if_exists)
        if materialized:
            self._refuse_read()
        if what == "VIEW":
            return st.DropView(*self.whole(), name, if_exists)
        behaviour = self.accept("CASCADE", "RESTRICT")
        return st.DropSchema(
            *self.whole(),
            name,
            if_exists,
            cascade=behaviour is not None and behaviour.word == "CASCADE",
        )

    def _alter(self) -> st.Statement:
        start = self.index
        if self.ahead().word in _NOT_ALTERED:
            self.take()
            return {
                "VIEW": self._alter_view,
                "SCHEMA": self._alter_schema,
                "MATERIALIZED": self._alter_materialized,
            }[self.take().word](start)
        self.take()
        self.note("<identifier>", *(f"'{word}'" for word in sorted(_NOT_ALTERED)))
        if not self.at("TABLE"):
            is_branch = self.token.word == "BRANCH"
            self.identifier()
            name = self.table_name()
            if is_branch and len(name.parts) == 1 and self.expect("IN", "SET").word == "IN":
                return self._alter_branch(name.parts[0].value)
            if not is_branch or len(name.parts) > 1:
                self.expect("SET")
            self.expect("AUTHORIZATION")
            self._authorization(start)
        table = self.token.span
        self.take()
        if_exists = self._accept_if("EXISTS")
        named_if = self.token.word == "IF"
        name = self.table_name()
        if named_if:
            self.note("'EXISTS'")
        if not if_exists and self.token.word == "SET" and self.ahead().word == "AUTHORIZATION":
            self.take()
            self.take()
            self._authorization(start)
        return st.AlterTable(
            *self.whole(), name, if_exists, self._alteration(if_exists=if_exists), table
        )

    def _rename_to(self, start: int) -> None:
        if self.expect("RENAME", "SET").word == "SET":
            self._second("SET", "AUTHORIZATION")
            self._authorization(start)
        self._second("RENAME", "TO")

    def _alter_view(self, start: int) -> st.RenameView:
        name = self.table_name()
        self._rename_to(start)
        return st.RenameView(*self.whole(), name, self.table_name())

    def _alter_schema(self, start: int) -> st.RenameSchema:
        name = self.table_name()
        self._rename_to(start)
        return st.RenameSchema(*self.whole(), name, self.identifier())

    def _alteration(
        self, *, if_exists: bool
    ) -> (
        st.AddColumnAction
        | st.DropColumnAction
        | st.RenameColumnAction
        | st.RenameTableAction
        | st.SetColumnTypeAction
        | st.DropNotNullAction
        | st.SetDefaultAction
        | st.DropDefaultAction
        | st.SetPropertiesAction
        | st.TableExecute
    ):
        if not if_exists and self.at("EXECUTE"):
            return self._executed()
        word = self.expect("ADD", "ALTER", "DROP", "RENAME", *(() if if_exists else ("SET",))).word
        if word == "SET":
            self.note("'AUTHORIZATION'")
            self.expect("PROPERTIES")
            return st.SetPropertiesAction(*self._assigned_properties())
        if word == "RENAME" and self.accept("TO"):
            return st.RenameTableAction(self.table_name())
        if word in {"ADD", "DROP"}:
            self._second(word, "COLUMN")
        else:
            self.expect("COLUMN")
        if word == "ADD":
            return self._added_column()
        if word == "ALTER":
            return self._altered_by(*self._path())
        if_exists = self._accept_if("EXISTS")
        name, *fields = self._path()
        if word == "DROP":
            return st.DropColumnAction(name, if_exists, tuple(fields))
        self.expect("TO")
        return st.RenameColumnAction(name, self.identifier(), if_exists, tuple(fields))

    def _altered_by(
        self, name: st.Identifier, *fields: st.Identifier
    ) -> st.SetColumnTypeAction | st.DropNotNullAction | st.SetDefaultAction | st.DropDefaultAction:
        sets = self.token.word == "SET"
        if sets:
            self.close("SET")
            if self.token.word not in {"DATA", "DEFAULT"}:
                self.restart()
                self.expect("DATA", "DEFAULT")
        else:
            self.expect(*(() if fields else ("DROP",)), "SET")
        if self.accept("DEFAULT"):
            return st.SetDefaultAction(name, self.literal()) if sets else st.DropDefaultAction(name)
        if sets:
            self.close("DATA")
            self.close("TYPE")
            type_name = self.type_name()
            whole = replace(name, text=".".join(part.text for part in (name, *fields)))
            return st.SetColumnTypeAction(
                name, self._type_of_column(whole, type_name, type_name.span), fields
            )
        self.expect("NOT")
        self.expect("NULL")
        return st.DropNotNullAction(name)

    def _path(self) -> tuple[st.Identifier, ...]:
        names = [self.identifier()]
        while self.accept("."):
            names.append(self.identifier())
        return tuple(names)

    def _executed(self) -> st.TableExecute:
        self.take()
        name = self.identifier()
        arguments = self._call_arguments() if self.accept("(") and not self.accept(")") else []
        return st.TableExecute(
            name, tuple(arguments), self.expression() if self.accept("WHERE") else None
        )

    def _call_arguments(self) -> list[st.CallArgument]:
        arguments = [self._call_argument()]
        self.restart()
        while self.accept(","):
            arguments.append(self._call_argument())
            self.restart()
        self.expect(")")
        return arguments

    def _added_column(self) -> st.AddColumnAction:
        if_not_exists = self._accept_if("NOT", "EXISTS")
        column, within = self._column(added=True)
        position = self.accept("FIRST", "LAST", "AFTER")
        after = self.identifier() if position is not None and position.word == "AFTER" else None
        return st.AddColumnAction(
            column, if_not_exists, "LAST" if position is None else position.word, after, within
        )

    def _truncate(self) -> st.Truncate:
        self.take()
        self.expect("TABLE")
        return st.Truncate(*self.whole(), self.table_name())

    # -- procedures

    def _call_procedure(self) -> st.CallStatement:
        self.take()
        name = self.table_name()
        arguments: list[st.CallArgument] = []
        self.expect("(")
        if not self.accept(")"):
            arguments = self._call_arguments()
        return st.CallStatement(*self.whole(), name, tuple(arguments))

    def _call_argument(self) -> st.CallArgument:
        start, name = self.index, None
        self.note("<identifier>")
        if self.at_identifier() and self.ahead().word == "=>":
            name = self.identifier()
            self.take()
        value = self.expression()
        return st.CallArgument(name, value, self.span_from(start))

    # -- views and schemas

    def _create_view(self, *, replace: bool) -> st.CreateView:
        self.expect("VIEW")
        name = self.table_name()
        self.restart()
        comment = self._comment()
        # There is no login, so both mean the same.
        invoker = (
            self.accept("SECURITY") is not None
            and self.expect("DEFINER", "INVOKER").word == "INVOKER"
        )
        if self.at("WITH"):
            self._refuse_clause("CREATE VIEW")
            self._properties()
        self.expect("AS")
        start = self.index
        self.note("'WITH'")
        tree = self.query_of_statement()
        query, span = st.Query(*self.whole(), tree), self.span_from(start)
        check_option = None
        if self.extended and self.accept("WITH"):
            scope = self.accept("CASCADED", "LOCAL")
            check_option = "CASCADED" if scope is None else scope.word
            self.expect("CHECK")
            self.expect("OPTION")
        return st.CreateView(
            *self.whole(),
            name,
            query,
            span,
            replace,
            comment.text if comment is not None else None,
            invoker,
            check_option,
        )

    def _create_schema(self) -> st.CreateSchema:
        if_not_exists = self._accept_if("NOT", "EXISTS")
        name = self.table_name()
        if self.at("AUTHORIZATION"):
            self._refuse_later(
                self.index,
                "AUTHORIZATION of CREATE SCHEMA is not supported by this engine",
                NO_USERS,
            )
            self.take()
            self._principal()
        _, spans = self._properties("schema")
        return st.CreateSchema(*self.whole(), name, if_not_exists, spans)

    def _create_elsewhere(self, start: int) -> NoReturn:
        """Parse and refuse CREATE CATALOG and CREATE FUNCTION; only the function's name is parsed."""
        what = self.take().word
        if what == "FUNCTION":
            self._refuse_now(
                start,
                (
                    WITHOUT_PATH
                    if len(self.table_name().parts) == 1
                    else ("This connector does not support creating functions")
                ),
                "CREATE FUNCTION",
            )
        self._accept_if("NOT", "EXISTS")
        self.identifier()
        self.expect("USING")
        self.identifier()
        self._comment()
        if self.accept("AUTHORIZATION"):
            self._principal()
        self._properties("catalog")
        self.expect_end()
        self._refuse_now(
            start, "CREATE CATALOG is not supported by the static catalog store", "CREATE CATALOG"
        )

    def _drop_elsewhere(self, start: int) -> NoReturn:
        what = self.take().word
        self._accept_if("EXISTS")
        name = self.identifier() if what == "CATALOG" else self.table_name()
        if isinstance(name, st.TableName):
            self.expect("(")
            message = "This connector does not support dropping functions"
            self._refuse_now(
                start, WITHOUT_PATH if len(name.parts) == 1 else message, "DROP FUNCTION"
            )
        cascades = self.accept("CASCADE", "RESTRICT")
        self.expect_end()
        message = "DROP CATALOG is not supported by the static catalog store"
        if cascades is not None and cascades.word == "CASCADE":
            message = "CASCADE is not yet supported for DROP CATALOG"
        self._refuse_now(start, message, "DROP CATALOG")

    def _refuse_now(self, start: int, message: str, words: str) -> NoReturn:
        raise ParseError.unsupported(message, hint=_INSTEAD[words]).at(self.tokens[start].span)

    # -- materialized views, which are refused

    def _refuse_materialized(self, start: int) -> None:
        self._refuse_later(
            start, "Materialized views are not supported by this engine", _NOT_MATERIALIZED
        )

    def _create_materialized(self, start: int) -> NoReturn:
        self.take()
        self._refuse_materialized(start)
        self.expect("VIEW")
        self._accept_if("NOT", "EXISTS")
        self.table_name()
        self.restart()
        if self.accept("GRACE"):
            self.expect("PERIOD")
            self.note("'INTERVAL'")
            if self.token.word != "INTERVAL":
                self.fail()
            self.primary()
        self._comment()
        self._properties()
        self.close("AS")
        self.note("'WITH'")
        self.query()
        self._refuse_read()

    def _alter_materialized(self, start: int) -> NoReturn:
        self._refuse_materialized(start)
        self.note("<identifier>")
        self.expect("VIEW")
        # The object's kind may be any word, MATERIALIZED too.
        self.note("'.'", "'SET'")
        if_exists = self._accept_if("EXISTS")
        self.table_name()
        if self.expect("RENAME", *(() if if_exists else ("SET",))).word == "SET":
            self._second("SET", "PROPERTIES")
            self._assigned_properties()
        else:
            self._second("RENAME", "TO")
            self.table_name()
        self._refuse_read()
