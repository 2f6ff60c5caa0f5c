"""Patterns of other engines' SQL, and what to write instead."""

from __future__ import annotations

import re
from dataclasses import astuple
from functools import cache
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import Edit, Hint
from rowmerge_nb.sql.functions.foreign_names import trino_type
from rowmerge_nb.sql.parser.foreign_forms import WRITE, edit_at_end, operand_before, put_before
from rowmerge_nb.sql.parser.tokens import TokenKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.parser.tokens import Token

_WINDOW: Final = 60
"""The number of tokens read on each side of the wrong one."""
_LONGEST: Final = 80
"""The characters read of a token; patterns take time with the square of a word's length."""
_NAME: Final = r'(?:\w+|"(?:[^"]|"")+")(?:\.(?:\w+|"(?:[^"]|"")+"))*'
_TYPE: Final = r"((?>\w+(?: PRECISION| VARYING)?(?: \( \w+(?: , \d+)? \))?))"
_FILE: Final = "Read the file in Python, as frame = pd.read_parquet('...'); its name is a source"
_FRAME_OF_FILE: Final = (
    "Read the file in Python, as frame = pd.read_%2(%3); its name is a source: %1 frame."
)
_VERSION: Final = "Write %1 FOR VERSION AS OF 3, or %1 FOR TIMESTAMP AS OF TIMESTAMP '...'."
_NO_KEYS: Final = "There are no generated keys; write the key's values."
_PLACEHOLDER: Final = (
    "Write {{ %1 }} for the value of a Python variable; in a program, write ? and pass"
    " parameters=[...]."
)
_BLOCK: Final = (
    "There are no variables or blocks; {{ x }} inserts a Python value, and a cell runs several"
    " statements, separated by semicolons."
)
_PYTHON: Final = "Python code belongs in a cell without %%merge."
_NO_COMMA: Final = Edit(",", "", "Remove the comma before %1.")


def _without(old: str, more: str = ".") -> Edit:
    return Edit(old, "", f"Leave {{old}} out{more}")


PATTERNS: Final[tuple[tuple[str, Hint], ...]] = (
    # -- values of Python
    (
        r"§\{ \{",
        "Cells of %%merge replace {{ name }}; in a program, write ? and pass parameters=[...].",
    ),
    (r"§\{ ('[^']*'|\"[^\"]*\") :", "Write CAST(ROW(...) AS row(name type)) for a row with names."),
    (r"(?:§\$? ?|\$ §)\{ ([\w.]+) \}", _PLACEHOLDER),
    (r"§\$ ?\$", "Write text in single quotes instead of $$."),
    (r"§& ?&", Edit("&&", "AND")),
    (
        (
            r"\b(?!(?:LIMIT|OFFSET|AND|OR|WHERE|BETWEEN|IN|LIKE|THEN|ELSE|SELECT|SET|BY|FROM|INTO|TABLE)\b)"
            r"([A-Za-z_][\w.]*) §: ([A-Za-z_][\w.]*)"
        ),
        Edit("%1:%2", "json_extract_scalar(%1, '$.%2')"),
    ),
    (r"RETURNING .*§\$ ?action\b", Edit("$action", "merge_action()")),
    (r"§[$:&] ?([A-Za-z_]\w*)", _PLACEHOLDER),
    (r"§IN \( [$:&@%] ?(\w+)", _PLACEHOLDER),
    (r"§IN \( \{ (\w+) \}", _PLACEHOLDER),
    (r"§%(?: \( (\w+) \))? s\b", "Write ? and pass parameters=[...]; in a cell, {{ name }}."),
    (r"§\$ ?\d", "Write ? for each value and pass parameters=[...]; in a cell, {{ name }}."),
    (r"\bSET §@ ?(\w+)", _PLACEHOLDER),
    (
        r"^MERGE (?:INTO )?\S+ .*USING §@ ?(\w+)",
        "There are no variables of tables; write a table, a DataFrame, or a query in parentheses.",
    ),
    (r"\b(?:FROM|JOIN|USING) §@ ?\w+", f"{_FILE}."),
    (r"([\w.\"]+) §@ ?v ?(\d+)", "Write %1 FOR VERSION AS OF %2."),
    (
        r"§@ ?@ ?ROWCOUNT\b|\bSQL §?% ?§?ROWCOUNT\b",
        "The report of a statement has its counts; in Python, _merge.count and _merge.counts.",
    ),
    (r"§@ ?@ ?(\w+)", "There are no variables of a server; leave @@%1 out."),
    (r"§@ ?(\w+)", _PLACEHOLDER),
    # -- the cell
    (
        r"§?% §?% ?(?:merge|sql)\b",
        "%%merge begins a cell, on its first line; separate statements by semicolons.",
    ),
    (r"^§! ?\w+", "A command of the shell belongs in a cell without %%merge."),
    (r"^§(?:import \w+|from \w+(?:\.\w+)* import|def \w+ \(|print \()", _PYTHON),
    (r"^§(\w+) = (?:SELECT|WITH|MERGE)\b", "Write %%merge -o %1 on the first line of the cell."),
    (r"^§(\w+) < ?< ", "Write %%merge %1 << on the first line of the cell."),
    (r"^§- ?[oh]\b", "Options belong on the cell's first line, behind %%merge."),
    (r"^§(tables|options|doctor|undo|help)\b", "It is a command of its own line: %merge %1."),
    (r"^§(?:exit|quit)\b", "There is nothing to end; the close() of an engine ends it."),
    (r"^§\\ ?d[a-z]* (\w+)", "Write DESCRIBE %1."),
    (r"^§\\ ?(?:d|l|dt|dn)\b", "Write SHOW TABLES or SHOW SCHEMAS."),
    (r"^§\\ ?copy\b", f"{_FILE}."),
    (r"^§\. ?tables\b", "Write SHOW TABLES."),
    (r"^§\. ?schema (\w+)", "Write SHOW CREATE TABLE %1."),
    (r"^§(?:GO\b|/)", "Separate statements by semicolons instead."),
    (r"^§#", "Write -- before a comment instead of #."),
    (
        r"(?:FROM|JOIN|INTO|TABLE|UPDATE) §# ?(\w+)",
        "There are no temporary tables; write the name without #, or name a DataFrame.",
    ),
    (r"§#", "Write -- before a comment; other names than plain ones need double quotes."),
    # -- first words
    (
        r"^§BEGIN(?: TRANSACTION| WORK| TRAN)?$",
        "Write START TRANSACTION, which only reads here; to try out a change, use --rehearse.",
    ),
    (r"^§(?:BEGIN|DECLARE|DO|IF|WHILE|LOOP|FOR)\b", _BLOCK),
    (r"^§END\b", "Write COMMIT, or ROLLBACK."),
    (r"^§WHEN\b", "Remove the semicolon before WHEN; its clause belongs to the MERGE before it."),
    (r"^§(?:EXEC|CALL) (\S+)", "Write CALL catalog.schema.procedure(...)."),
    (r"^§(?:PRINT|ECHO) (\S+)", "Write SELECT %1."),
    (r"^§ASSERT\b", "Write SELECT and the condition."),
    (r" §IF (?:NOT )?MATCHED\b", Edit("IF", "WHEN")),
    (
        r"^§(?:OPTIMIZE|VACUUM)(?: TABLE)? ([\w.\"]+)",
        (
            "Write ALTER TABLE %1 EXECUTE optimize, or vacuum, for a table of Delta Lake; optimize, or"
            " expire_snapshots, for one of Iceberg; other stores need none."
        ),
    ),
    (
        r"^§(?:COPY|LOAD|IMPORT|UNLOAD|EXPORT)\b",
        (
            f"{_FILE}: INSERT INTO t SELECT * FROM frame. To write a file, use"
            " result.to_parquet('...')."
        ),
    ),
    (
        r"^§(?:RESTORE|FLASHBACK|UNDROP)(?: TABLE)? ([\w.\"]+)",
        "Write %merge undo %1, or in Python rowmerge_nb.restore('%1', version).",
    ),
    (
        r"^§(?:CACHE|UNCACHE|MSCK|INSTALL|PRAGMA|LOAD|CHECKPOINT)\b",
        "Leave it out; this engine needs no such statement.",
    ),
    (r"^REFRESH §TABLE", "Leave it out; every statement reads the current table."),
    (
        r"^§ATTACH\b",
        (
            "Add a catalog in Python: rowmerge_nb.default_engine().add_catalog('x',"
            " rowmerge_nb.SqliteConnector('x.db'))."
        ),
    ),
    (r"^§SUMMARIZE ([\w.\"]+)", "Write DESCRIBE %1 for the columns; pandas has frame.describe()."),
    (r"^§FROM ([\w.\"]+)", "Write SELECT * FROM %1."),
    (r"^(?:WITH|SELECT) .* AS §FROM\b", "Write a name behind AS, or leave AS out."),
    (r"^WITH (\w+) AS §SELECT\b", "Write parentheses around the query: WITH %1 AS (SELECT ...)."),
    (r"^WITH (\w+) \( §SELECT\b", "Write AS before the query: WITH %1 AS (SELECT ...)."),
    (r"^WITH .*\) , §(SELECT)\b", _NO_COMMA),
    (r"\bAS §FROM ([\w.\"]+)", "Write AS SELECT * FROM %1."),
    (r"^§PIVOT\b|PIVOT \( ?\w* ?§?\(", "Write one aggregate with FILTER (WHERE ...) per column."),
    (
        r"^INSERT §IGNORE (?:INTO |(?!\(|VALUES|SELECT))([\w.\"]+|`\S+)?",
        "Write MERGE INTO %1 USING (...) s ON a.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (...).",
    ),
    (r"UNPIVOT §?\(|^§UNPIVOT\b", "Write CROSS JOIN UNNEST(ARRAY[a, b]) instead of UNPIVOT."),
    (r"^§GET \w+|^§PUT \w+", f"{_FILE}."),
    # -- SHOW, DESCRIBE, SET, USE
    (
        r"^CREATE (?:OR REPLACE )?VIEW .* §WITH (?:(?:CASCADED|LOCAL) )?CHECK OPTION",
        "Leave WITH CHECK OPTION out, and add the view's condition to the statements that change it.",
    ),
    (r"^SHOW §PARTITIONS(?: (?:FROM|IN))? ([\w.]+)", 'Write SELECT * FROM "%1$partitions".'),
    (r"^SHOW §TBLPROPERTIES ([\w.\"]+)", "Write SHOW CREATE TABLE %1."),
    (r"^SHOW §(?:VIEWS|ALL)\b", "Write SHOW TABLES."),
    (r"^SHOW §(?:INDEX|INDEXES|KEYS)\b", "There are no indexes; write SHOW CREATE TABLE."),
    (r"^SHOW §(?!DATABASES)\w+$", "Write SHOW SESSION for the settings, or SHOW TABLES."),
    (r"^SET §\w", "Write SET SESSION name = value; SHOW SESSION lists the names."),
    (
        r"^(?:DESCRIBE|DESC) HISTORY §(((?:[\w.\"]+\.)?)(?:\"([^\"]+)\"|(\w+)))",
        (
            'Write SELECT * FROM %2"%3$history" for a table of Iceberg; for one of Delta Lake, read'
            " its versions: SELECT * FROM %1 FOR VERSION AS OF 0."
        ),
    ),
    (r"^(?:DESCRIBE|DESC) DETAIL §([\w.\"]+)", "Write SHOW CREATE TABLE %1."),
    (
        r"^(?:DESCRIBE|DESC) (?:(?:EXTENDED|FORMATTED|TABLE) §|§TABLE )([\w.\"]+)",
        "Write DESCRIBE %1.",
    ),
    (
        r"^(?:DESCRIBE|DESC) §(?:SELECT|WITH)\b",
        "Write PREPARE q FROM and the query, then DESCRIBE OUTPUT q.",
    ),
    (r"^USE (?:DATABASE|SCHEMA) §([\w.\"]+)", "Write USE %1."),
    (r"^USE (?:WAREHOUSE|ROLE) §", "Leave it out; Spark runs the statements of this engine."),
    # -- CREATE, DROP, ALTER
    (
        r"^(CREATE|DROP) §DATABASE(?: IF(?: NOT)? EXISTS)? ([\w.\"]+)",
        Edit("DATABASE", "SCHEMA", "Write %1 {new} %2 instead of {old}."),
    ),
    (r"(CREATE(?: OR REPLACE)?) §(?:TEMP|TEMPORARY|GLOBAL|LOCAL) .*?\bVIEW\b", "Write %1 VIEW."),
    (
        r"CREATE(?: OR REPLACE)? §TEMP(?:ORARY)? FUNCTION",
        "Write WITH FUNCTION f(x bigint) RETURNS bigint RETURN x + 1 before the SELECT.",
    ),
    (
        r"CREATE §(?:UNLOGGED|TRANSIENT|EXTERNAL|VOLATILE|HYBRID|DYNAMIC|COLUMN|FOREIGN) TABLE",
        "Write CREATE TABLE.",
    ),
    (
        r"^(?:CREATE|DROP) §(?:UNIQUE |CLUSTERED |BITMAP )?INDEX\b",
        "There are no indexes; MERGE finds rows by the equalities of ON.",
    ),
    (
        (
            r"^(?:CREATE|DROP|ALTER) §(STREAM|TASK|STAGE|SEQUENCE|PROCEDURE|TRIGGER|TYPE|USER|EXTENSION"
            r"|WAREHOUSE|PIPE|POLICY|DOMAIN|SYNONYM|MACRO|SECRET|ASSERTION|RULE)\b"
        ),
        "Tables, views and schemas can be created here, and no %1.",
    ),
    (r"^DROP §([a-z_][\w.]*)$", Edit("DROP %1", "DROP TABLE %1", WRITE)),
    (r"^DROP .* §(CASCADE|RESTRICT|PURGE|CONSTRAINTS)\b", _without("%1")),
    (r"TABLE ([\w.\"]+) §LIKE ([\w.\"]+)", "Write CREATE TABLE %1 (LIKE %2)."),
    (r"TABLE ([\w.\"]+) §CLONE ([\w.\"]+)", "Write CREATE TABLE %1 AS SELECT * FROM %2."),
    (r"^CREATE .*TABLE ([\w.\"]+) §$", "Write its columns: CREATE TABLE %1 (id bigint)."),
    (r"TABLE ([\w.\"]+) \( (\w+) \) §$", "Write a type behind each column: %2 bigint."),
    (r"^CREATE .* §(?:GENERATED|IDENTITY|AUTOINCREMENT)\b", _NO_KEYS),
    (
        r"^CREATE .* §(UNIQUE|REFERENCES|CHECK|CONSTRAINT|FOREIGN|COLLATE|ENCODE|AUTO)\b",
        "Trino has no such constraint of a column but NOT NULL; leave it out.",
    ),
    (r"^CREATE .*, (?:INDEX|KEY) §\(", "There are no indexes; leave it out."),
    (r"^CREATE .* §NULL\b", _without("NULL", "; columns accept it unless they are NOT NULL.")),
    (r"\bENUM \( §'", "There is no type ENUM; write varchar."),
    (r"\bvarchar \( §max", "Write varchar for text of any length."),
    (
        r"^CREATE .* §USING (\w+)",
        (
            "The store is the catalog, the first part of the table's name; leave USING %1 out, or"
            " write properties: WITH (...)."
        ),
    ),
    (
        r"^CREATE .* §PARTITIONED BY \( (\w+)",
        "Write WITH (partitioned_by = ARRAY['%1']); for Iceberg, WITH (partitioning = ARRAY['%1']).",
    ),
    (
        (
            r"^CREATE .* §(ENGINE|CHARSET|DEFAULT CHARSET|TBLPROPERTIES|LOCATION|STORED|CLUSTERED|CLUSTER"
            r"|OPTIONS|ROW FORMAT|DISTRIBUTED|DISTKEY|SORTKEY|TABLESPACE|INHERITS)\b"
        ),
        "Leave it out; properties of the store's table are written WITH (name = value).",
    ),
    (r"^CREATE .*TABLE [\w.\"]+ §(SELECT|WITH|VALUES)\b", put_before("AS", "%1")),
    (r" IF (?:NOT )?§EXIST\b", Edit("EXIST", "EXISTS")),
    (
        r"^CREATE (?:OR REPLACE )?TABLE ([\w.\"]+) §(\w+) <type>",
        "Write the columns in parentheses: CREATE TABLE %1 (%2 %t3).",
    ),
    (r"\b(?:STRUCT|ROW) §<", "Write row(name type, ...) instead."),
    (
        r"ALTER TABLE ([\w.\"]+) ADD (?:§?CONSTRAINT \S+ )?§?PRIMARY §?KEY",
        (
            "Write CREATE OR REPLACE TABLE %1 WITH (primary_key = ARRAY['...']) AS SELECT * FROM %1, for"
            " SQLite and PostgreSQL; other stores need no key."
        ),
    ),
    (
        r"^(CREATE (?:OR REPLACE )?TABLE [\w.\"]+) AS .* WITH §\( (\w+) =",
        "Write the properties before AS: %1 WITH (%2 = ...) AS SELECT ....",
    ),
    (
        (
            r"ALTER TABLE ([\w.\"]+) ADD §(?:COLUMNS? )?(?:\( )?(?!COLUMNS?\b|\()([\w.\"]+) <type>"
            r"((?: [^\s,()]+)*)(?: \))?$"
        ),
        Edit("", "ALTER TABLE %1 ADD COLUMN %2 %t3%4", WRITE),
    ),
    (
        r"ALTER TABLE ([\w.\"]+) ADD §(?!CONSTRAINT|PRIMARY|UNIQUE|CHECK|FOREIGN|INDEX)",
        "Write ALTER TABLE %1 ADD COLUMN name type, once for each column.",
    ),
    (
        (
            r"ALTER TABLE ([\w.\"]+) (?:§?MODIFY|ALTER)(?: COLUMN)? (?:\( )?§?(?!COLUMN\b)([\w.\"]+)"
            r" §?(?:TYPE )?(?!(?:SET|DROP|ADD|FIRST|AFTER)\b)<type>"
        ),
        Edit("", "ALTER TABLE %1 ALTER COLUMN %2 SET DATA TYPE %t3", WRITE),
    ),
    (
        r"ALTER TABLE ([\w.\"]+) §CHANGE(?: COLUMN)? ([\w.\"]+) (?:TYPE|\2) <type>",
        Edit("", "ALTER TABLE %1 ALTER COLUMN %2 SET DATA TYPE %t3", WRITE),
    ),
    (
        r"ALTER TABLE ([\w.\"]+) §CHANGE(?: COLUMN)? ([\w.\"]+) ([\w.\"]+) <type>",
        (
            "Write ALTER TABLE %1 RENAME COLUMN %2 TO %3, and then ALTER TABLE %1 ALTER COLUMN %3"
            " SET DATA TYPE %t4."
        ),
    ),
    (
        r"ALTER TABLE ([\w.\"]+) §(?:MODIFY|CHANGE)(?: COLUMN)? ([\w.\"]+)",
        "Write ALTER TABLE %1 ALTER COLUMN %2 SET DATA TYPE and the type.",
    ),
    (r"ALTER TABLE ([\w.\"]+) SET §TBLPROPERTIES", "Write ALTER TABLE %1 SET PROPERTIES a = 'b'."),
    (r"ALTER TABLE ([\w.\"]+) RENAME §(\S+) TO", "Write ALTER TABLE %1 RENAME COLUMN %2 TO."),
    (
        r"ALTER TABLE ([\w.\"]+) RENAME COLUMN (\S+) §(\S+)$",
        Edit("", "ALTER TABLE %1 RENAME COLUMN %2 TO %3", WRITE),
    ),
    (r"ALTER TABLE ([\w.\"]+) DROP §(\w+)$", Edit("", "ALTER TABLE %1 DROP COLUMN %2", WRITE)),
    # -- INSERT, UPDATE, DELETE
    (r"^(INSERT INTO|DELETE FROM|UPDATE|ANALYZE) §TABLE ([\w.\"]+)", "Leave TABLE out: %1 %2."),
    (r"^INSERT INTO ([\w.\"]+) §SET (\w+) = (\S+)", "Write INSERT INTO %1 (%2) VALUES (%3)."),
    (
        r"^INSERT INTO ([\w.\"]+) (?:\( .* \) )?§BY NAME",
        "Write the columns twice: INSERT INTO %1 (a, b) SELECT a, b.",
    ),
    (r"^INSERT §ALL\b", "Write one INSERT INTO for each table, or several rows behind VALUES."),
    (
        (
            r"((?:§OUTPUT\b ?|OUTPUT §(?=inserted|deleted|\$))(.*?))"
            r"(?= (?:;|FROM|INTO|SELECT|VALUES|WHERE)(?: |$)|$)"
        ),
        Edit(
            "%1",
            "",
            "Trino has no OUTPUT; write RETURNING at the end, with --dialect extended: new for"
            " inserted, old for deleted, merge_action() for $action.",
            "RETURNING %r2",
        ),
    ),
    (
        r"^(?:MERGE|DELETE|UPDATE|INSERT)(?: INTO| FROM)? §?TOP §?\(",
        "Trino has no TOP; choose the rows by a condition: WHERE id IN (SELECT id FROM ... LIMIT 1).",
    ),
    (r"\bNEXT §?VALUE §?FOR\b", "There are no sequences; write the key's values."),
    (r"^(UPDATE|DELETE)(?: SET §\w| §WHERE\b)", "The table's name is missing after %1."),
    (r"^UPDATE ([\w.\"]+) §(WHERE .*) (SET .*)", "Write SET before WHERE: UPDATE %1 %3 %2."),
    (r"\bSET (\w+) §('[^']*'|\d+)", "Write %1 = %2."),
    (
        r"^INSERT INTO ([\w.\"]+) §(?!DEFAULT\b)(\w+(?: , \w+)*) (?:VALUES|SELECT)\b",
        "Write the columns in parentheses: INSERT INTO %1 (%2).",
    ),
    (r"\bVALUES .*\) §\(", "Write a comma between the rows."),
    (r"^DELETE §\* FROM ([\w.\"]+)", "Write DELETE FROM %1."),
    (r"^UPDATE ([\w.\"]+) §(\w+) = (\S+)", "Write SET before the columns: UPDATE %1 SET %2 = %3."),
    (
        r"^(?:UPDATE|DELETE FROM) ([\w.\"]+) .*§(?:LIMIT\b|ORDER BY\b)|^(?:DELETE FROM) ([\w.\"]+) §LIMIT",
        "Choose the rows by a condition: WHERE id IN (SELECT id FROM ... LIMIT 1).",
    ),
    (
        r"^UPDATE §OR (ABORT|FAIL|IGNORE|REPLACE|ROLLBACK)\b",
        _without("OR %1", "; an error undoes the whole UPDATE."),
    ),
    (r"SET ([\w.]+) §\[", "Assign the whole array: %1 = concat(...), or transform(%1, x -> ...)."),
    (r"CURRENT §?OF\b", "There are no cursors; write a condition on the key."),
    (
        r"§OVERRIDING (SYSTEM|USER) VALUE",
        Edit(
            "OVERRIDING %1 VALUE",
            "",
            "Leave OVERRIDING out; the store refuses values that it must number itself.",
        ),
    ),
    (
        r"^INSERT INTO ([\w.\"]+) §REPLACE (?:WHERE|USING|ON)\b",
        (
            "Write DELETE FROM %1 WHERE ... and INSERT INTO %1, or one MERGE with WHEN NOT MATCHED BY"
            " SOURCE AND ... THEN DELETE."
        ),
    ),
    (
        r"^INSERT INTO [^;]* §FROM (\w+) SELECT\b",
        "Write the FROM behind the SELECT: SELECT ... FROM %1.",
    ),
    (
        r"^WITH .*\( §(DELETE|INSERT|UPDATE|MERGE)\b",
        "A query of WITH changes no rows; run the %1 as a statement of its own.",
    ),
    (r"AS (?:NOT )?§?(?:NOT )?MATERIALIZED \(", _without("MATERIALIZED")),
    # -- MERGE
    (r"^MERGE .* USING §(SELECT|VALUES)\b", "Write parentheses around it: USING (%1 ...) s."),
    (r"^MERGE (?:(?! (?:ON|WHEN) ).)* §WHERE\b", Edit("WHERE", "ON")),
    (r"^MERGE (?:(?! USING ).)* §FROM\b", Edit("FROM", "USING")),
    (
        r"^MERGE INTO ((?:(?! USING ).)+) §ON (.+) USING ((?:(?! USING ).)+) WHEN\b",
        "Write USING before ON: MERGE INTO %1 USING %3 ON %2 and the clauses.",
    ),
    (r"^MERGE (?:(?! WHEN ).)* §THEN INSERT\b", put_before("WHEN NOT MATCHED", "THEN")),
    (r"^MERGE (?:(?! WHEN ).)* §THEN\b", put_before("WHEN MATCHED", "THEN")),
    (r" WHEN MATCHED .* §ELSE INSERT\b", Edit("ELSE", "WHEN NOT MATCHED THEN")),
    (r" THEN §SET\b", put_before("UPDATE", "SET")),
    (
        r" THEN (?:UPDATE|DELETE|INSERT) §((?:(?:FROM|INTO) )?[\w.\"]+)(?= (?:SET|\(|VALUES|WHEN)|$)",
        _without("%1", "; MERGE INTO names the table."),
    ),
    (r" THEN UPDATE SET .* §FROM ([\w.\"]+)", _without("FROM %1", "; USING names the source.")),
    (
        r"^MERGE INTO [\w.]+ (?:AS )?(\w+) USING [\w.]+ (?:AS )?(\w+) §WHEN\b",
        "Write ON and its condition before WHEN, such as ON %1.id = %2.id.",
    ),
    (
        r"^MERGE (?:(?! ON ).)* §WHEN\b",
        "Write ON and its condition before WHEN, such as ON t.id = s.id.",
    ),
    (
        r"^MERGE .* THEN UPDATE SET .*§DELETE WHERE\b",
        (
            "Oracle deletes rows that this UPDATE took, by their new values: write WHEN MATCHED AND"
            " condition THEN DELETE before it, with the new values and the UPDATE's WHERE."
        ),
    ),
    (
        r"^MERGE INTO ([\w.\"]+)(?: AS)?(?: (\w+))? USING .* §USING \( (\w+)",
        "Write ON and an equality instead of USING: ON t.%3 = s.%3.",
    ),
    (
        r"^MERGE (?:(?!\bWHEN\b).)*§$",
        "Write at least one clause: WHEN MATCHED THEN UPDATE SET ..., or WHEN NOT MATCHED THEN INSERT ....",
    ),
    (
        r"THEN (?:UPDATE SET|INSERT) \* §(?:EXCEPT|EXCLUDE) \(",
        "Write the columns: UPDATE SET a = s.a, INSERT (a, b) VALUES (s.a, s.b).",
    ),
    (
        r"THEN INSERT .*VALUES \(.*\) §, \(",
        "A clause inserts one row for each row of the source; UNION ALL in the source makes more.",
    ),
    (
        r"THEN INSERT (?:(?! WHEN ).)*§WHERE\b",
        "Trino's WHEN clauses have no WHERE; write the condition after WHEN NOT MATCHED AND.",
    ),
    (
        r"(\w+)\.§\* (?:\) )?(?:IS DISTINCT FROM|<>|! ?=) (?:ROW )?(?:\( )?(\w+)\.\*",
        "Write the columns: ROW(%1.a, %1.b) IS DISTINCT FROM ROW(%2.a, %2.b).",
    ),
    (
        r"(\w+)\.§\* (?:\) )?(IS NOT DISTINCT FROM|=) (?:ROW )?(?:\( )?(\w+)\.\*",
        "Write the columns: ROW(%1.a, %1.b) %2 ROW(%3.a, %3.b).",
    ),
    (
        r"\b(IS NOT|IS) §(None|NaN|NaT|NA)\b",
        Edit("%2", "NULL", "Write %1 {new} instead of {old}; pandas' NaN is NULL here."),
    ),
    (r"THEN INSERT (?:\( .* \) )?§SELECT\b", "Write VALUES (...) with the source's columns."),
    (
        r"^MERGE INTO ([\w.\"]+) (?:VERSION|TIMESTAMP|FOR) §?(?:AS|VERSION|TIMESTAMP)\b",
        "A former version cannot be changed; leave it out.",
    ),
    (r"THEN UPDATE §(\w+) =", "Write SET before the columns: UPDATE SET %1 = ...."),
    (r"SET (\w+) §([-+*/|]) ?=", "Write %1 = %1 %2 ... instead of %2=."),
    (r"SET §\( (\w+)", "Write one assignment for each column: SET %1 = ..., and so on."),
    (r"SET \w+ §\. \*", "Write the columns one by one: SET a = s.a, b = s.b."),
    (r"VALUES \( (\w+) §\. \*", "Write the columns one by one: VALUES (%1.a, %1.b)."),
    (r"VALUES §(\w+)$", "Write the values in parentheses: VALUES (%1.a, %1.b)."),
    (r"§IN \( [^()]*, \)", "Remove the comma before the parenthesis."),
    # -- commas and words at the wrong place
    (r", §\)", Edit(", )", ")", "Remove the comma before {new}.")),
    (r", §(FROM|WHERE|WHEN|GROUP|ORDER|HAVING|UNION)", _NO_COMMA),
    (r"\bFETCH .* ROWS? §$", "Write ONLY behind ROWS."),
    (r", §$", Edit(",", "", "Remove the comma at the end.")),
    (r"(=|<|>|\+|-|/|\bLIKE|\bESCAPE|\bIN|\bBETWEEN) §$", "A value is missing after %1."),
    (r"§IN \( [^()]*$", "Write ) where the parenthesis closes."),
    (r"\b(WHERE|AND|OR|ON) (?:NOT )?§IN\b", "A column is missing after %1."),
    (r"\b(?:WHERE|AND|OR|ON) [^,]*\bNOT §NULL\b", Edit("NOT NULL", "IS NOT NULL")),
    (r"\bJOIN \S+(?: AS)?(?: \w+)? §WHERE\b", Edit("WHERE", "ON")),
    (r"\bJOIN [\w.\"]+ (\w+) §\.", put_before("ON", "%1")),
    (r"\bJOIN .* USING §(\w+)", "Write USING (%1)."),
    (r"SELECT \* §([\w.\"]+)(?= (?:WHERE|GROUP|ORDER|LIMIT)\b|$)", put_before("FROM", "%1")),
    (
        r"\b(AND|OR|NOT|ON|WHERE) §(?:AND\b|OR\b|WHEN\b|THEN\b|FROM\b|(?:GROUP|ORDER) BY\b|$)",
        "A condition is missing after %1.",
    ),
    (
        r"\b(GROUP BY|HAVING|ORDER BY|LIMIT)\b(?:(?!\bSELECT\b).)* §(WHERE|GROUP BY|HAVING|ORDER BY)\b",
        "Write %2 before %1.",
    ),
    (r"SELECT (?:(?! FROM ).)* WHERE (?:(?! FROM ).)* §(FROM \S+)", "Write %1 before WHERE."),
    # -- FROM
    (
        r"FROM (?:generate_series|range|generate_array) §\( (.*?) \)",
        "Write FROM UNNEST(sequence(1, 10)) AS s (x).",
    ),
    (r"\b(FROM|JOIN|USING) (?:read_|scan_)(csv|json|parquet)\w* §\( ('[^']*')", _FRAME_OF_FILE),
    (r"\b(FROM|JOIN|USING) §(?='[^']*\.(csv|json|parquet)')('[^']*')", _FRAME_OF_FILE),
    (r"\b(FROM|JOIN|USING) (?:read_\w+|scan_\w+|parquet_scan|csv) §\(", f"{_FILE}: %1 frame."),
    (r"\b(FROM|JOIN|USING) §'[^']*'", f"{_FILE}: %1 frame."),
    (r"LATERAL FLATTEN \(.*§=>", "Write CROSS JOIN UNNEST(array) AS x (value)."),
    (r"LATERAL §VIEW (?:OUTER )?\w+ \( (\S+) \)", "Write CROSS JOIN UNNEST(%1) AS x (value)."),
    (r"(?:FROM|JOIN) (\w+) §\(", "Write a function of tables as TABLE(%1(...))."),
    (
        r"\bCROSS §APPLY\b",
        Edit("CROSS APPLY", "CROSS JOIN LATERAL", "Write {new} (...) instead of {old}."),
    ),
    (r"\bOUTER §APPLY\b", "Write LEFT JOIN LATERAL (...) ON true instead of OUTER APPLY."),
    (r"LEFT §ANTI JOIN (\S+)", "Write WHERE NOT EXISTS (SELECT 1 FROM %1 WHERE ...)."),
    (r"LEFT §SEMI JOIN (\S+)", "Write WHERE EXISTS (SELECT 1 FROM %1 WHERE ...)."),
    (r"§(WITH \( (?:\w*LOCKX?|READPAST|SERIALIZABLE)\b[^()]*\))", _without("%1")),
    (r"\( \+ §\)", "Write LEFT JOIN ... ON instead of (+)."),
    (r"§?MINUS §?SELECT\b", Edit("MINUS", "EXCEPT")),
    (
        r"CONNECT §BY\b|START §WITH\b",
        "Write WITH RECURSIVE t (columns) AS (...) instead of CONNECT BY.",
    ),
    (
        r"§?QUALIFY §?",
        (
            "Write the window function in a subquery, and its condition in a WHERE around it,"
            " instead of QUALIFY."
        ),
    ),
    (r"FOR §(UPDATE|SHARE)\b", _without("FOR %1", "; Trino locks no rows.")),
    (r"FOR §SYSTEM_TIME AS OF", "Write FOR TIMESTAMP AS OF."),
    (r"(?:FROM|JOIN|USING) ([\w.\"]+) VERSION §AS OF (\d+)", "Write %1 FOR VERSION AS OF %2."),
    (
        r"(?:FROM|JOIN|USING) ([\w.\"]+) TIMESTAMP §AS OF ('[^']*')",
        "Write %1 FOR TIMESTAMP AS OF TIMESTAMP %2.",
    ),
    (
        r"FROM ([\w.\"]+) (?:AS OF §|(?:VERSION|TIMESTAMP) §AS OF|(?:AT|BEFORE) \( .*§=>)",
        _VERSION,
    ),
    (
        r"FROM \S+ (?:SAMPLE (?:\( )?§|§USING SAMPLE|TABLESAMPLE .*§PERCENT)",
        "Choose rows by a condition in WHERE.",
    ),
    (r"§?(?:DISTRIBUTE|CLUSTER|SORT) §?BY\b", "Write ORDER BY, or leave it out."),
    (r"§\|", "Trino has no pipes or operators of bits; write bitwise_or(a, b), or a subquery."),
    # -- SELECT
    (
        r"DISTINCT §ON\b",
        (
            "Write row_number() OVER (PARTITION BY ... ORDER BY ...) AS n in a subquery, and WHERE n"
            " = 1 around it."
        ),
    ),
    (r"SELECT TOP \( (\d+) \) ", edit_at_end("TOP (%1)", "LIMIT %1")),
    (
        r"§INTO (?:# ?)?([\w.\"]+) FROM",
        "Write CREATE TABLE %1 AS SELECT ... instead of SELECT INTO.",
    ),
    (
        r"\* (?:EXCLUDE|EXCEPT) ?§?\( ?§?(\w+).*?\) FROM ([\w.\"]+)|\* §EXCLUDE \( (\w+)",
        (
            "Write the columns, or FROM TABLE(exclude_columns(input => TABLE(t), columns =>"
            " DESCRIPTOR(a)))."
        ),
    ),
    (r"\* §(REPLACE|RENAME)\b", "Write the columns one by one instead of * %1."),
    (
        r"GROUP_CONCAT \( (\S+) §SEPARATOR ('[^']*')",
        "Write listagg(%1, %2) WITHIN GROUP (ORDER BY %1).",
    ),
    (
        r"STRING_AGG \( (\S+) , ('[^']*') \) WITHIN GROUP §",
        "Write listagg(%1, %2) WITHIN GROUP (ORDER BY %1).",
    ),
    (r"SAFE_CAST \( (\S+) §AS (\w+)", "Write TRY_CAST(%1 AS type)."),
    (r"STRUCT \( (\S+) §AS", "Write CAST(ROW(%1, ...) AS row(name type, ...))."),
    (
        r"(current_\w+|localtime\w*) §\(|(current_\w+|localtime\w*) \( §\)",
        "Write %1 without parentheses.",
    ),
    (r"ARRAY \( §SELECT", "Write (SELECT array_agg(x) FROM t)."),
    (r"COUNT \( DISTINCT §\*", "Write count(*) of a subquery with SELECT DISTINCT *."),
    (r"(\S+) §for (\w+) in\b", "Write transform(array, %2 -> ...) instead of a comprehension."),
    (r"\bAS §'([\w ]+)'", Edit("AS '%1'", 'AS "%1"')),
    # -- operators
    (
        r"(?!NOT\b)([\w.\"]+|\)) ((?:NOT )?)§ILIKE (?!ANY\b|ALL\b)('[^']*'|[\w.\"]+)(?![\w.]| \()",
        Edit("%1 %2ILIKE %3", "lower(%1) %2LIKE lower(%3)"),
    ),
    (
        r"(?!NOT\b)([\w.\"]+|\)) ((?:NOT )?)§(RLIKE|REGEXP) ('[^']*'|[\w.\"]+)(?![\w.]| \()",
        Edit("%1 %2%3 %4", "%2regexp_like(%1, %4)"),
    ),
    (r"§(RLIKE|REGEXP)\b", "Write regexp_like(a, b) instead of a %1 b."),
    (r"\bBETWEEN (\S+) §, (\S+)", Edit("BETWEEN %1, %2", "BETWEEN %1 AND %2")),
    (
        r"§?\bIN §?((?:\d+|'[^']*')(?: , (?:\d+|'[^']*'))*)",
        "Write parentheses around the values: IN (%1).",
    ),
    (r"(\S+) §~ \* ('[^']*')", "Write regexp_like(%1, '(?i)...') instead of ~*."),
    (r"(\S+) §~ ('[^']*')", Edit("%1 ~ %2", "regexp_like(%1, %2)")),
    (r"(\S+) §! ~ \*? ?('[^']*')", Edit("%1 !~ %2", "NOT regexp_like(%1, %2)")),
    (r"(\S+) §GLOB ('[^']*')", "Write %1 LIKE 'a%' or regexp_like(%1, '^a') instead of GLOB."),
    (r"(\S+) §SIMILAR TO ('[^']*')", Edit("%1 SIMILAR TO %2", "regexp_like(%1, %2)")),
    (r"<= §>", Edit("<=>", "IS NOT DISTINCT FROM")),
    (r"§&", "Write bitwise_and(a, b) instead of a & b."),
    (r"\|\| \S+ §=", Edit("||", "OR", "Write {new} instead of {old}, which joins texts.")),
    (r"§! ", Edit("!", "NOT")),
    (r"§\^", "Write power(a, b), or bitwise_xor(a, b), instead of a ^ b."),
    (r"(\S+) (?:DIV §|/ §/ )(\S+)", "Write %1 / %2; integers divide without a remainder."),
    (r"(\S+) \* §\* (\S+)", Edit("%1 ** %2", "power(%1, %2)")),
    (r"< §<|(?<!-)> §>", "Write bitwise_left_shift(a, n) or bitwise_right_shift(a, n)."),
    (r"([\w.]+) -> ?§> ('[^']*')", "Write json_extract_scalar(%1, '$.name') instead of ->>."),
    (r"§: =", Edit(":=", "=")),
    (r"§=>", Edit("=>", ">=")),
    (r"= §<", Edit("=<", "<=")),
)
"""A pattern of a statement's tokens with § before the wrong one, and the hint, in which %1 is the
first group, %t1 its type of Trino, and %r1 its OUTPUT as RETURNING; the first pattern that fits counts.
"""


def pattern_hint(text: str, tokens: Sequence[Token], index: int) -> Hint | None:
    """Return the hint of the first pattern that fits the tokens around the wrong one."""
    line = _line(text, tokens, index)
    for pattern, hint in PATTERNS:
        match = _compiled(pattern).search(line)
        if match is not None:
            groups = [
                _operand(text, tokens, index)
                if group == ")" and match.end(number) < line.index("§")
                else group
                for number, group in enumerate(match.groups(), 1)
                if group is not None
            ]
            if isinstance(hint, str):
                return _filled(hint, groups)
            return Edit(*(_filled(words, groups) for words in astuple(hint)))
    return None


def _filled(template: str, groups: Sequence[str]) -> str:
    def group(reference: re.Match[str]) -> str:
        number = int(reference[2])
        text = groups[number - 1] if number <= len(groups) else "..."
        text = text.replace("( ", "(").replace(" )", ")").replace(" ,", ",").replace("§", "")
        if reference[1] == "r":
            return re.sub(r"(?i)\$ ?action\b|\b(?:inserted|deleted)(?=\.)", _returned, text)
        return trino_type(text.replace(" (", "(")) if reference[1] else text

    return re.sub(r"%([rt]?)(\d)", group, template)


def _returned(output: re.Match[str]) -> str:
    return {"i": "new", "d": "old"}.get(output[0][0].lower(), "merge_action()")


def _operand(text: str, tokens: Sequence[Token], index: int) -> str:
    """Return the call or the parentheses before an operator of one or two tokens."""
    return operand_before(text, tokens, index if tokens[index - 1].text == ")" else index - 1)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # A quoted part may have any characters.
    pattern = pattern.replace(r"[\w.\"]+", _NAME).replace("<type>", _TYPE)
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def _line(text: str, tokens: Sequence[Token], index: int) -> str:
    """Return the tokens around the wrong one, separated by blanks, with § before it."""
    first = max(index - _WINDOW, 0)
    words = [token.text for token in tokens[:2]] if first else []
    window = tokens[first : index + _WINDOW]
    for at, token in enumerate(window, first):
        word = "" if token.kind is TokenKind.END else token.text.replace("§", " ")
        if token.kind is TokenKind.UNKNOWN and at + 1 < len(tokens):
            # A run of one character is one token, whose text is the character.
            word = text[token.span.start : tokens[at + 1].span.start].strip()
        words.append(f"§{word[:_LONGEST]}" if at == index else word[:_LONGEST])
    return " ".join(words).rstrip().replace(" . ", ".")
