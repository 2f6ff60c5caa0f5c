"""Translates statements of other engines into Trino's words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import AnalysisError, ParseError, RowMergeError, SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.catalog.inputs import statement_text
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.analyzer.statements.assigned_values import has_defaults
from rowmerge_nb.sql.analyzer.statements.conflicts import merge_text
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.spi.metadata import ConnectorTableMetadata

    TableLookup = Callable[[Sequence[str]], ConnectorTableMetadata | None]

DIALECTS: Final = {
    "delta": "databricks",
    "postgresql": "postgres",
    "duckdb": "duckdb",
    "sqlite": "sqlite",
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "sqlserver": "tsql",
    "oracle": "oracle",
}
"""The dialects by name, and what sqlglot calls them."""
_EVOLVING: Final = re.compile(r"(\s*MERGE)\s+WITH\s+SCHEMA\s+EVOLUTION\b", re.IGNORECASE)
_REPLACING: Final = re.compile(r"\s*REPLACE(?=\s+INTO\b)", re.IGNORECASE)
_TWO_FROMS: Final = re.compile(r"^(\s*DELETE)(\s+FROM)(?=\s+[^\s()]+\s+FROM\b)", re.IGNORECASE)
_LOCKS: Final = re.compile(
    r"\bWITH\s*\(\s*(?:HOLDLOCK|SERIALIZABLE|NOLOCK|READPAST|ROWLOCK|UPDLOCK|TABLOCKX?|XLOCK|PAGLOCK)"
    r"\b[^()']*\)",
    re.IGNORECASE,
)
_DELETES_UPDATED: Final = re.compile(
    r"\bUPDATE\s+SET\b(?:(?!\bWHEN\b).)*?\b(?P<place>DELETE)\s+WHERE\b",
    re.IGNORECASE | re.DOTALL,
)
_ORACLE_WORDS: Final = {
    "ROWNUM": "write LIMIT after a query.",
    "ROWID": "write the columns of a key.",
    "LEVEL": "write WITH RECURSIVE.",
    "SYSDATE": "write localtimestamp(0).",
    "SYSTIMESTAMP": "write current_timestamp.",
}
_INTERNAL: Final = re.compile(r"Required keyword: '\w+' missing for <class .*|.*<class .*")
_ADVICE: Final = "Write the statement in Trino's syntax; see docs/dialect.md."


@dataclass(frozen=True)
class Translation:
    """A statement of another engine as this one runs it.

    Args:
        differences: sentences on what it does otherwise than there, or has become.
        dialect: ``trino``, or ``extended`` if Trino has no syntax for it.
    """

    sql: str
    differences: tuple[str, ...] = ()
    dialect: str = "trino"

    def __str__(self) -> str:
        return self.sql


def translate_statement(
    sql: str,
    dialect: str,
    table: TableLookup | None = None,
) -> Translation:
    """Translate one statement of another engine.

    Args:
        table: returns a table by the parts of its name, for statements that depend on its columns
            and its key.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for other dialects and types; SYNTAX_ERROR, at its place
            in the text, if the text cannot be read; NOT_SUPPORTED if it has no translation.
        SetupError: sqlglot is not installed.
    """
    text = statement_text(sql)
    if dialect not in DIALECTS:
        raise RowMergeError.invalid(
            f"There is no dialect {dialect!r} to translate from",
            hint=did_you_mean(str(dialect), DIALECTS) or f"Choose one of {', '.join(DIALECTS)}.",
        )
    evolving = _EVOLVING.match(text) if dialect == "delta" else None
    if evolving is not None:
        # sqlglot does not read these words; all others keep their places.
        gap = " " * (evolving.end() - evolving.end(1))
        text = f"{evolving[1]}{gap}{text[evolving.end() :]}"
    replacing = _REPLACING.match(text) if dialect == "sqlite" else None
    if replacing is not None:
        # sqlglot reads this form alone.
        text = f"INSERT OR REPLACE{text[replacing.end() :]}"
    if dialect == "oracle":
        _refuse_deletes_of_updates(text)
    locks = _LOCKS.findall(text) if dialect == "sqlserver" else []
    if locks:
        # sqlglot does not read them before an alias without AS; all others keep their places.
        text = _LOCKS.sub(lambda match: " " * len(match[0]), text)
    if dialect == "sqlserver":
        # sqlglot reads the form with one FROM.
        text = _TWO_FROMS.sub(lambda match: f"{match[1]}{' ' * len(match[2])}", text)
    tree = _tree(text, dialect)
    differences = [
        f"{' '.join(lock.split())} is omitted: a statement here fails, and can be"
        " repeated, if another statement changed its rows."
        for lock in locks
    ]
    differences = list(dict.fromkeys([*differences, *_adapted(tree, dialect)]))
    words = _written(tree, dialect)
    if evolving is not None:
        words = words.replace("MERGE", "MERGE WITH SCHEMA EVOLUTION", 1)
    try:
        parse(words)
    except ParseError:
        translation = _beyond(words, differences, dialect, table)
    else:
        translation = Translation(words, tuple(differences))
    return replace(translation, sql=_in_lines(translation.sql, translation.dialect))


def _in_lines(sql: str, dialect: str) -> str:
    """Begin a line with each clause of a MERGE, so that a position says which one."""
    statement = parse(sql, dialect=dialect)
    for clause in reversed(statement.clauses) if isinstance(statement, st.Merge) else ():
        start = clause.span.start
        if sql[start - 1 : start] == " ":
            sql = f"{sql[: start - 1]}\n{sql[start:]}"
    return sql


def _beyond(
    words: str,
    differences: list[str],
    dialect: str,
    table: TableLookup | None,
) -> Translation:
    try:
        statement = parse(words, dialect="extended")
    except ParseError as error:
        raise AnalysisError.unsupported(
            f"The statement has no translation from {dialect}: {error.message}, in: {words}",
            hint=error.hint or _ADVICE,
        ) from error
    differences += [form.message for form in statement.forms]
    if statement.in_trino:
        return Translation(statement.in_trino, tuple(differences))
    if isinstance(statement, st.Insert) and statement.conflict is not None:
        merge = _as_merge(statement, statement.conflict, table, keeps=dialect == "duckdb")
        if merge is None:
            differences.append(
                "It runs as a MERGE by the primary key of its table, which its report shows."
            )
        else:
            words = merge
            differences.append(f"{statement.conflict.title} is this MERGE.")
            if "THEN ERROR" not in merge:
                return Translation(words, tuple(differences))
    differences.append('Trino has no syntax for it; run it with dialect="extended".')
    return Translation(words, tuple(differences), "extended")


def _as_merge(
    statement: st.Insert,
    conflict: st.Conflict,
    table: TableLookup | None,
    *,
    keeps: bool,
) -> str | None:
    """Return the MERGE of an INSERT, or None if it depends on an unknown table.

    ``keeps``: OR REPLACE keeps the values of columns that are not inserted, as in DuckDB.
    """
    metadata = table and table([part.value for part in statement.target.parts])
    keys = [key.value for key in conflict.keys]
    if metadata is not None:
        all_columns = metadata.columns
        keys = keys or [str(name) for name in metadata.properties.get("primary_key") or ()]
    elif statement.columns and not conflict.replaces and not has_defaults(statement.query.tree):
        all_columns = tuple(ColumnMetadata(name.text, UNKNOWN) for name in statement.columns)
    else:
        return None
    by_name = {column.name.lower(): column for column in all_columns}
    names = [name.value for name in statement.columns or ()] or list(by_name)
    if not keys or not {*map(str.lower, keys)} <= {*names} <= {*by_name}:
        return None
    columns = [by_name[name] for name in names]
    return merge_text(
        statement.text,
        statement,
        conflict,
        columns if keeps else all_columns,
        columns,
        [by_name[key.lower()].name for key in keys],
    )


def _tree(text: str, dialect: str) -> Any:
    try:
        from sqlglot import ErrorLevel
        from sqlglot import parse as parse_foreign
        from sqlglot.errors import SqlglotError
    except ModuleNotFoundError as error:
        raise SetupError(
            "sqlglot is not installed, which reads the statements of other engines",
            hint=f"Run: {install_command('verify')}",
        ) from error
    try:
        trees = [
            tree
            for tree in parse_foreign(text, read=DIALECTS[dialect], error_level=ErrorLevel.RAISE)
            if tree is not None
        ]
    except SqlglotError as error:
        raise _unread(text, dialect, error) from error
    if len(trees) != 1:
        raise ParseError(
            f"translate takes one statement; this text has {len(trees)}",
            hint="Translate each statement separately." if trees else "Write a statement.",
        ).at(Span(0, 0, 1, 1))
    return trees[0]


def _refuse_deletes_of_updates(text: str) -> None:
    match = _DELETES_UPDATED.search(text)
    if match is None:
        return
    raise ParseError(
        "DELETE WHERE of an UPDATE has no translation",
        hint="Oracle deletes rows that this UPDATE has changed, using their updated"
        " values. Write WHEN MATCHED AND condition THEN DELETE first, with the new values in"
        " the condition, and with the UPDATE's own WHERE.",
    ).at(Span.within(text, match.start("place"), match.end("place")))


def _unread(text: str, dialect: str, error: Exception) -> ParseError:
    details = getattr(error, "errors", None) or [{}]
    message = details[0].get("description") or str(error).splitlines()[0]
    message = _INTERNAL.sub("a part of the statement is missing or unknown", message)
    unread = ParseError(f"The text cannot be read as {dialect}: {message}", hint=_ADVICE)
    line, column = details[0].get("line"), details[0].get("col")
    if line is None or column is None:
        return unread
    # sqlglot counts to the end of the token.
    token = details[0].get("highlight") or ""
    lines = text.split("\n")
    start = sum(len(one) + 1 for one in lines[: line - 1]) + max(column - len(token), 0)
    unread.at(Span.within(text, min(start, len(text)), min(start + len(token), len(text))))
    return unread


def _written(tree: Any, dialect: str) -> str:
    from sqlglot import ErrorLevel
    from sqlglot.errors import SqlglotError

    try:
        return str(tree.sql(dialect="trino", unsupported_level=ErrorLevel.RAISE, comments=False))
    except SqlglotError as error:
        raise AnalysisError.unsupported(
            f"The statement has no translation from {dialect}: {str(error).splitlines()[0]}",
            hint=_ADVICE,
        ) from error


def _adapted(tree: Any, dialect: str) -> Iterator[str]:
    """Adapt what sqlglot writes as it reads it, and yield the differences."""
    from sqlglot import exp

    if dialect == "sqlserver":
        yield from _adapted_from_sqlserver(tree)
    elif dialect == "oracle":
        yield from _foreign_columns(tree)
    tables = tree.args.get("tables") if isinstance(tree, exp.Delete) else None
    if tables and len(tables) == 1 and tree.this is not None:
        # Its printer omits a FROM with joins, and writes USING.
        tree.set("using", [tree.this])
        tree.set("this", tables[0])
        tree.set("tables", None)
    if isinstance(tree, exp.Merge) and not any(
        when.args.get("matched") and not when.args.get("condition")
        for when in tree.find_all(exp.When)
    ):
        yield (
            "In Trino, several source rows that match one target row fail with"
            " MERGE_TARGET_ROW_MULTIPLE_MATCHES, even if no clause takes them:"
            " docs/duplicates.md."
        )
    # Oracle itself refuses such a name as ambiguous.
    if isinstance(tree, exp.Merge) and dialect != "oracle":
        yield from _source_names(tree)
    for when in tree.find_all(exp.When):
        action = when.args["then"]
        where = action.args.get("where") if isinstance(action, exp.Expression) else None
        if where is not None:
            action.set("where", None)
            condition = when.args.get("condition")
            both = where.this if condition is None else exp.and_(condition, where.this)
            when.set("condition", both)
            yield "The WHERE of a clause is the condition after WHEN ... AND."
        if dialect == "duckdb" and _is_star(action):
            word = "UPDATE" if isinstance(action, exp.Update) else "INSERT"
            when.set("then", exp.Var(this=word))
            yield f"{word} * takes the columns in their order in DuckDB."
    if tree.find(exp.Div):
        yield "Here, integer division truncates, and decimal division has different digits."
    if any(literal.is_string for literal in tree.find_all(exp.Literal)):
        if dialect == "sqlserver":
            yield "Here, text comparison is case-sensitive; there, the collation decides."
        if dialect == "oracle":
            yield "Here, an empty text is not NULL."


def _source_names(tree: Any) -> Iterator[str]:
    """Qualify the bare names of NOT MATCHED, which are the source's columns elsewhere."""
    from sqlglot import exp

    using = tree.args["using"]
    alias = using.args.get("alias")
    source: Any = alias.this if alias is not None else using.this
    names: dict[str, None] = {}
    for when in tree.find_all(exp.When) if isinstance(source, exp.Identifier) else ():
        action = when.args["then"]
        if (
            when.args.get("matched")
            or when.args.get("source")
            or not isinstance(action, exp.Insert)
        ):
            continue
        for part in (when.args.get("condition"), action.args.get("expression")):
            for column in part.find_all(exp.Column) if isinstance(part, exp.Expression) else ():
                if column.table or column.find_ancestor(exp.Query, exp.Lambda):
                    continue
                column.set("table", source.copy())
                names[column.sql(dialect="trino")] = None
    if names:
        yield (
            "Names without a table in NOT MATCHED are ambiguous in Trino if both sides have them:"
            f" {', '.join(names)}."
        )


def _foreign_columns(tree: Any) -> Iterator[str]:
    from sqlglot import exp

    for name in tree.find_all(exp.Column, exp.Pseudocolumn):
        word = str(name.name).upper()
        if word in {"NEXTVAL", "CURRVAL"}:
            yield f"{name.sql()} is unknown: Trino has no sequences. Write the key's values."
        elif word in _ORACLE_WORDS and not name.table:
            yield f"{word} is unknown in Trino: {_ORACLE_WORDS[word]}"


def _adapted_from_sqlserver(tree: Any) -> Iterator[str]:
    """Adapt texts, OUTPUT and sequences of SQL Server, and yield the differences."""
    from sqlglot import exp

    for like in tree.find_all(exp.Like):
        if isinstance(like.expression, exp.Literal) and "[" in like.expression.this:
            yield (
                f"LIKE {like.expression.sql()} has a character class, which Trino"
                " takes literally: use regexp_like."
            )
    for number in tree.find_all(exp.NextValueFor):
        raise AnalysisError.unsupported(
            f"{number.sql()} has no translation: Trino has no sequences",
            hint="Write the key's values, or omit the column so that the database's"
            " default applies.",
        )
    for added in list(tree.find_all(exp.Add)):
        if any(isinstance(side, exp.Literal) and side.is_string for side in _sides(added)):
            yield "+ between texts is || in Trino."
            _join_texts(added)
    returning = tree.args.get("returning")
    for column in () if returning is None else list(returning.find_all(exp.Column)):
        row = {"inserted": "new", "deleted": "old"}.get(column.table.lower())
        if row is not None:
            column.set("table", exp.to_identifier(row))
        elif column.name.lower() == "$action":
            column.replace(exp.Anonymous(this="merge_action"))
    if returning is not None:
        yield "OUTPUT is RETURNING: inserted is new, deleted is old, and $action is merge_action()."


def _sides(added: Any) -> Iterator[Any]:
    from sqlglot import exp

    for side in (added.left, added.right):
        if isinstance(side, exp.Add):
            yield from _sides(side)
        else:
            yield side


def _join_texts(added: Any) -> None:
    from sqlglot import exp

    for one in list(added.find_all(exp.Add)):
        one.replace(exp.DPipe(this=one.left, expression=one.right, safe=False))


def _is_star(action: Any) -> bool:
    from sqlglot import exp

    if isinstance(action, exp.Update):
        return any(isinstance(item, exp.Star) for item in action.expressions or ())
    return isinstance(action, exp.Insert) and isinstance(action.this, exp.Star)
