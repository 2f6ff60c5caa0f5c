"""Syntax trees of statements: frozen data with source spans."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.base.errors import AnalysisError
    from rowmerge_nb.spi.alterations import CreateBranch, DropBranch, FastForwardBranch
    from rowmerge_nb.spi.operations import Operation
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.tree.syntax import (
        AllColumns,
        Expression,
        Literal,
        NamedQuery,
        QueryNode,
        Relation,
        SelectItem,
    )

_MOST_SHOWN: Final = 4_000


def excerpt(text: str) -> str:
    """Return the text for readers: the beginning and end of a very long one.

    >>> excerpt("SELECT 1"), len(excerpt("SELECT " + "1 + " * 10_000 + "1"))
    ('SELECT 1', 4034)
    """
    if len(text) <= _MOST_SHOWN:
        return text
    half = _MOST_SHOWN // 2
    return f"{text[:half]} ... {len(text) - 2 * half} characters omitted ... {text[-half:]}"


@dataclass(frozen=True)
class Span:
    r"""A span of the statement's text.

    Args:
        about: the span that an error concerns, if Trino reports it elsewhere.

    >>> Span.within("SELECT 1\nFROM t", 9, 13)
    Span(start=9, end=13, line=2, column=1)
    """

    start: int
    end: int
    line: int
    column: int
    about: Span | None = field(default=None, repr=False, compare=False)

    @classmethod
    def within(cls, text: str, start: int, end: int) -> Span:
        return cls(start, end, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))

    def of(self, text: str) -> str:
        return text[self.start : self.end]

    def shown(self, text: str) -> str:
        return excerpt(self.of(text))


@dataclass(frozen=True)
class Identifier:
    """A name as written (``text``) and as compared (``value``)."""

    text: str
    span: Span

    @property
    def value(self) -> str:
        """The lower-case name, as Trino compares even quoted ones."""
        return self.text.lower()


@dataclass(frozen=True)
class TableName:
    """A table's name of one to three parts, and the ``@ branch`` of a target."""

    parts: tuple[Identifier, ...]
    span: Span
    branch: Identifier | None = None


@dataclass(frozen=True)
class ExtendedForm:
    """A form of the extended dialect, and the sentence that says what it became."""

    message: str
    span: Span
    is_alias: bool = False


@dataclass(frozen=True)
class Statement:
    """Base of all statements; spans refer to ``text``, which excludes the final semicolon.

    Args:
        in_trino: the statement in Trino's words; empty if it is so already, or cannot be.
    """

    text: str
    span: Span
    forms: tuple[ExtendedForm, ...] = field(default=(), kw_only=True)
    in_trino: str = field(default="", kw_only=True)
    versions: tuple[str, str] = field(default=("old", "new"), kw_only=True)


class StarMatching(StrEnum):
    """How UPDATE or INSERT without a list finds the source's columns."""

    NAMES = "names"
    """Each column of the target takes the source's of its name, which must exist: SET *."""
    EXISTING = "existing names"
    """The source's columns go to the target's of their names: BY NAME."""
    POSITIONS = "positions"
    """The source's columns go to the target's in their order."""


@dataclass(frozen=True)
class MergeClause:
    """One WHEN clause.

    Args:
        head: from WHEN to the operation's keyword.
        star: the span of ``*`` in SET * or INSERT *, or of UPDATE or INSERT without a list.
    """

    number: int
    matched: bool
    operation: Operation
    condition: Expression | None
    columns: tuple[Identifier, ...]
    values: tuple[Expression, ...]
    span: Span
    head: Span
    by_source: bool = False
    star: Span | None = None
    matching: StarMatching = StarMatching.NAMES
    error: str | None = None
    defaults: bool = False


@dataclass(frozen=True)
class Merge(Statement):
    """``[WITH ...] MERGE [WITH SCHEMA EVOLUTION] INTO target [[AS] alias] USING source ON condition
    WHEN ... [RETURNING ...]``.

    UPDATE ... FROM and DELETE ... USING are such statements too; ``prefers_target`` is for INSERT ...
    ON CONFLICT, where a bare name means the target's column.
    """

    target: TableName
    target_alias: Identifier | None
    source: Relation
    on: Expression
    clauses: tuple[MergeClause, ...]
    returning: tuple[SelectItem | AllColumns, ...] = ()
    named_queries: tuple[NamedQuery, ...] = ()
    evolution: Span | None = None
    recursive: bool = False
    prefers_target: bool = False


@dataclass(frozen=True)
class Update(Statement):
    """``UPDATE table SET column = value, ... [WHERE condition] [RETURNING ...]``.

    WITH and the alias of the target require the extended dialect, as in `Delete`.
    """

    target: TableName
    columns: tuple[Identifier, ...]
    values: tuple[Expression, ...]
    where: Expression | None
    returning: tuple[SelectItem | AllColumns, ...] = ()
    alias: Identifier | None = None
    named_queries: tuple[NamedQuery, ...] = ()
    recursive: bool = False


@dataclass(frozen=True)
class Delete(Statement):
    """``DELETE FROM table [WHERE condition] [RETURNING ...]``."""

    target: TableName
    where: Expression | None
    returning: tuple[SelectItem | AllColumns, ...] = ()
    alias: Identifier | None = None
    named_queries: tuple[NamedQuery, ...] = ()
    recursive: bool = False


@dataclass(frozen=True)
class Query(Statement):
    """A query: SELECT, VALUES, TABLE."""

    tree: QueryNode


@dataclass(frozen=True)
class Conflict:
    """``ON CONFLICT [(keys)] DO NOTHING`` or ``DO UPDATE SET ... [WHERE condition]`` of an INSERT;
    INSERT OR REPLACE, and INSERT OR IGNORE, which is DO NOTHING.

    Args:
        form: the words that start it.
        keys: without them, those of the table's primary key.
        changes: the list of SET; None for DO NOTHING.
        replaces: a row with the key gets all values of the new row.
    """

    form: str
    span: Span
    keys: tuple[Identifier, ...] = ()
    changes: Span | None = None
    where: Expression | None = None
    replaces: bool = False

    @property
    def title(self) -> str:
        return f"INSERT ... {self.form}" if self.form.startswith("ON") else self.form


@dataclass(frozen=True)
class Insert(Statement):
    """``INSERT INTO table [(columns)] query [ON CONFLICT ...]``; DEFAULT VALUES is one row of an
    empty list of columns.

    ``by_name`` is the span of BY NAME.
    """

    target: TableName
    columns: tuple[Identifier, ...] | None
    query: Query
    returning: tuple[SelectItem | AllColumns, ...] = ()
    alias: Identifier | None = None
    conflict: Conflict | None = None
    by_name: Span | None = None


@dataclass(frozen=True)
class Comment:
    """``COMMENT 'text'`` of a new table or column."""

    text: str
    span: Span


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of CREATE TABLE or ADD COLUMN; ``type`` is an error if unknown."""

    name: Identifier
    type: Type | AnalysisError
    nullable: bool = True
    comment: Comment | None = None
    default: Expression | None = None


@dataclass(frozen=True)
class LikeTable:
    """``LIKE name [INCLUDING PROPERTIES]`` in CREATE TABLE; ``span`` is that of LIKE."""

    span: Span
    name: TableName
    including: bool


@dataclass(frozen=True)
class CreateTable(Statement):
    """``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name (columns) [WITH (properties)]`` or ``... AS
    query``.

    Args:
        properties: lower-case name to a text, number, boolean, or tuple of those; an error for
            other expressions.
    """

    name: TableName
    columns: tuple[ColumnDefinition | LikeTable, ...]
    column_aliases: tuple[Identifier, ...]
    properties: Mapping[str, Any]
    if_not_exists: bool
    query: Query | None
    with_data: bool = True
    property_spans: Mapping[str, Span] = field(default_factory=dict)
    comment: Comment | None = None
    replace: bool = False


@dataclass(frozen=True)
class DropTable(Statement):
    """``DROP TABLE [IF EXISTS] name``."""

    name: TableName
    if_exists: bool


@dataclass(frozen=True)
class Prepare(Statement):
    """``PREPARE name FROM statement``; ``inner`` is the statement's text."""

    name: Identifier
    inner: str


@dataclass(frozen=True)
class WrittenValue:
    """A value after USING; ``text`` is in parentheses unless a literal."""

    text: str
    span: Span
    is_literal: bool
    tree: Expression


@dataclass(frozen=True)
class Execute(Statement):
    """``EXECUTE name [USING value, ...]``, or ``EXECUTE IMMEDIATE 'statement' [USING value, ...]``
    without a name.
    """

    name: Identifier | None
    inner: Literal | None
    values: tuple[WrittenValue, ...]


@dataclass(frozen=True)
class DescribePrepared(Statement):
    """``DESCRIBE INPUT name``, or ``DESCRIBE OUTPUT name``; ``prepared`` is set once the name is
    resolved.
    """

    name: Identifier
    output: bool
    prepared: Statement | None = None


@dataclass(frozen=True)
class StartTransaction(Statement):
    """``START TRANSACTION [mode, ...]``; ``isolation`` has underscores, and is ``""`` by default."""

    read_only: bool
    isolation: str


@dataclass(frozen=True)
class Commit(Statement):
    """``COMMIT [WORK]``."""


@dataclass(frozen=True)
class Rollback(Statement):
    """``ROLLBACK [WORK]``."""


@dataclass(frozen=True)
class Use(Statement):
    """``USE [catalog.]schema``."""

    catalog: Identifier | None
    schema: Identifier


@dataclass(frozen=True)
class SetTimeZone(Statement):
    """``SET TIME ZONE zone``; None for LOCAL."""

    zone: Expression | None


@dataclass(frozen=True)
class SetSession(Statement):
    """``SET SESSION name = value``, or ``RESET SESSION name``."""

    name: TableName
    value: Expression | None


@dataclass(frozen=True)
class Deallocate(Statement):
    """``DEALLOCATE PREPARE name``."""

    name: Identifier


@dataclass(frozen=True)
class AddColumnAction:
    """``ADD COLUMN [IF NOT EXISTS] name type [NOT NULL] [FIRST | LAST | AFTER other]``; ``within``
    is a new field's path.
    """

    column: ColumnDefinition
    if_not_exists: bool
    position: str
    after: Identifier | None
    within: tuple[Identifier, ...] = ()


@dataclass(frozen=True)
class DropColumnAction:
    """``DROP COLUMN [IF EXISTS] name``; ``fields`` is the path within the column."""

    name: Identifier
    if_exists: bool
    fields: tuple[Identifier, ...] = ()


@dataclass(frozen=True)
class RenameColumnAction:
    """``RENAME COLUMN [IF EXISTS] name TO other``; ``fields`` as in `DropColumnAction`."""

    name: Identifier
    to: Identifier
    if_exists: bool
    fields: tuple[Identifier, ...] = ()


@dataclass(frozen=True)
class RenameTableAction:
    """``RENAME TO name``."""

    to: TableName


@dataclass(frozen=True)
class SetColumnTypeAction:
    """``ALTER COLUMN name SET DATA TYPE type``; ``fields`` as in `DropColumnAction`, ``type`` is an error
    if unknown.
    """

    name: Identifier
    type: Type | AnalysisError
    fields: tuple[Identifier, ...] = ()


@dataclass(frozen=True)
class DropNotNullAction:
    """``ALTER COLUMN name DROP NOT NULL``."""

    name: Identifier


@dataclass(frozen=True)
class SetDefaultAction:
    """``ALTER COLUMN name SET DEFAULT literal``."""

    name: Identifier
    default: Expression


@dataclass(frozen=True)
class DropDefaultAction:
    """``ALTER COLUMN name DROP DEFAULT``."""

    name: Identifier


@dataclass(frozen=True)
class SetPropertiesAction:
    """``SET PROPERTIES name = value, ...``: values as in `CreateTable`, None for DEFAULT."""

    properties: Mapping[str, Any]
    spans: Mapping[str, Span]


@dataclass(frozen=True)
class BranchAction:
    """``CREATE BRANCH``, ``DROP BRANCH`` and ``ALTER BRANCH ... FAST FORWARD``, as a change of a
    table's branches.
    """

    change: CreateBranch | DropBranch | FastForwardBranch


@dataclass(frozen=True)
class TableExecute:
    """``EXECUTE procedure(argument => value) WHERE condition`` of ALTER TABLE."""

    procedure: Identifier
    arguments: tuple[CallArgument, ...]
    where: Expression | None


@dataclass(frozen=True)
class AlterTable(Statement):
    """``ALTER TABLE [IF EXISTS] name action``; ``word`` is the span of TABLE."""

    name: TableName
    if_exists: bool
    action: (
        AddColumnAction
        | DropColumnAction
        | RenameColumnAction
        | RenameTableAction
        | SetColumnTypeAction
        | DropNotNullAction
        | SetDefaultAction
        | DropDefaultAction
        | SetPropertiesAction
        | TableExecute
        | BranchAction
    )
    word: Span


@dataclass(frozen=True)
class CommentOn(Statement):
    """``COMMENT ON TABLE name IS 'text'``, ``ON VIEW name``, ``ON COLUMN name.column``; ``comment``
    is None for NULL.
    """

    kind: str
    name: TableName
    column: Identifier | None
    comment: str | None


@dataclass(frozen=True)
class Truncate(Statement):
    """``TRUNCATE TABLE name``."""

    target: TableName


@dataclass(frozen=True)
class CreateView(Statement):
    """``CREATE [OR REPLACE] VIEW name [COMMENT 'text'] [SECURITY DEFINER | INVOKER] AS query``.

    The text of ``query_span`` is stored. The extended dialect has ``WITH [CASCADED | LOCAL] CHECK
    OPTION`` at the end.
    """

    name: TableName
    query: Query
    query_span: Span
    replace: bool
    comment: str | None = None
    invoker: bool = False
    check_option: str | None = None


@dataclass(frozen=True)
class DropView(Statement):
    """``DROP VIEW [IF EXISTS] name``."""

    name: TableName
    if_exists: bool


@dataclass(frozen=True)
class RenameView(Statement):
    """``ALTER VIEW name RENAME TO name``."""

    name: TableName
    to: TableName


@dataclass(frozen=True)
class CreateSchema(Statement):
    """``CREATE SCHEMA [IF NOT EXISTS] name [WITH (properties)]``."""

    name: TableName
    if_not_exists: bool
    property_spans: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True)
class DropSchema(Statement):
    """``DROP SCHEMA [IF EXISTS] name [CASCADE | RESTRICT]``."""

    name: TableName
    if_exists: bool
    cascade: bool


@dataclass(frozen=True)
class AnalyzeTable(Statement):
    """``ANALYZE name [WITH (properties)]``."""

    name: TableName
    property_spans: Mapping[str, Span]


@dataclass(frozen=True)
class RenameSchema(Statement):
    """``ALTER SCHEMA name RENAME TO name``."""

    name: TableName
    to: Identifier


@dataclass(frozen=True)
class CallArgument:
    """An argument of a CALL: ``name => value``, or a value."""

    name: Identifier | None
    value: Expression
    span: Span


@dataclass(frozen=True)
class CallStatement(Statement):
    """``CALL name(arguments)``."""

    name: TableName
    arguments: tuple[CallArgument, ...]


@dataclass(frozen=True)
class Show(Statement):
    """``SHOW BRANCHES | CATALOGS | SCHEMAS | TABLES | COLUMNS | FUNCTIONS | CREATE TABLE | CREATE VIEW``,
    ``SHOW CREATE SCHEMA``, ``DESCRIBE name``.

    ``kind`` is the words after SHOW, ``escape`` the escape character of ``like``.
    """

    kind: str
    name: TableName | None = None
    like: Literal | None = None
    escape: Literal | None = None


@dataclass(frozen=True)
class Explain(Statement):
    """``EXPLAIN [(TYPE LOGICAL | DISTRIBUTED | VALIDATE, FORMAT TEXT | GRAPHVIZ | JSON)] statement``."""

    statement: Statement
    kind: str = "DISTRIBUTED"
    format: str = "TEXT"
