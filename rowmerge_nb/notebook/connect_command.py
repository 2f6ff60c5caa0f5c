"""``%merge connect``: its words, its output, and passwords that do not stay."""

from __future__ import annotations

import getpass
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.conninfo import masked, secrets_in
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import plural
from rowmerge_nb.notebook.cell_options import parse_line
from rowmerge_nb.notebook.display import grid_bundle, text_bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from IPython.core.interactiveshell import InteractiveShell

    from rowmerge_nb.engine.catalog.connecting import Connection, ConnectionRequest
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.notebook.display import Bundle
    from rowmerge_nb.spi.factory import ConnectorFactory

FORM: Final = "%merge connect STORE LOCATION [PROPERTY=VALUE ...] [AS NAME]"
_PROPERTY: Final = re.compile(r"([A-Za-z_]\w*)(?:\.([\w.-]+))?=(.*)", re.DOTALL)
_IS_ADDRESS: Final = re.compile(r"[A-Za-z][\w+.-]*://")
_ALLOWED: Final = frozenset({"engine", "password", "help"})


@dataclass(frozen=True)
class ConnectLine:
    """The words behind ``%merge connect``.

    Args:
        store: the store's name; ``""`` if the address implies it.
        properties: the texts of properties, each with the name inside of a table or ``""``.
    """

    store: str = ""
    location: str | None = None
    name: str | None = None
    properties: tuple[tuple[str, str, str], ...] = ()
    options: Mapping[str, str] | None = None


def parse_connect(text: str) -> ConnectLine:
    try:
        words = shlex.split(text)
    except ValueError as error:
        _refuse(f"The arguments of %merge connect cannot be read: {error}", _form_hint())
    at = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    behind = parse_line(shlex.join(words[at:]))
    if behind.rest or behind.quiet_name:
        _refuse(f"'{masked(behind.rest)}' follows the options", "Write options last.")
    if excess := sorted(set(behind.values) - _ALLOWED):
        _refuse(f"--{excess[0]} and %merge connect cannot be combined", f"Omit --{excess[0]}.")
    words = words[:at]
    name = None
    if any(word.lower() == "as" for word in words):
        if len(words) < 2 or words[-2].lower() != "as":
            _refuse("AS must be at the end, followed by one name", _form_hint())
        name, words = words[-1], words[:-2]
    line = ConnectLine(name=name, options=behind.values)
    for index, word in enumerate(words):
        if match := _PROPERTY.fullmatch(word):
            pair = (match[1], match[2] or "", match[3])
            line = replace(line, properties=(*line.properties, pair))
        elif index == 0 and not _IS_ADDRESS.match(word):
            line = replace(line, store=word)
        elif line.location is None:
            line = replace(line, location=word)
        else:
            _refuse(
                f"'{masked(word)}' is a second location",
                f'Put a location with blanks in quotes: "{masked(line.location)} {masked(word)}".',
            )
    if not line.store and line.location is None and (words or name):
        _refuse("The store is missing", _form_hint())
    return line


def is_listing(line: ConnectLine) -> bool:
    return not line.store and line.location is None


def request_of(line: ConnectLine, *, ask: bool) -> ConnectionRequest:
    from rowmerge_nb.engine.catalog.connecting import ConnectionRequest, factory_of

    factory = factory_of(line.store, line.location)
    properties: dict[str, Any] = {}
    for name, key, text in line.properties:
        if name in properties and not key:
            _refuse(f"The property '{name}' occurs twice", "Remove one of them.")
        value = _typed(factory, name, text)
        if key:
            properties.setdefault(name, {})[key] = value
        else:
            properties[name] = value
    if ask:
        if "password" not in factory.properties:
            _refuse(f"The store {factory.name} takes no password", "Omit --password.")
        properties["password"] = _ask(line)
    return ConnectionRequest(line.store or factory.name, line.location, line.name, properties)


def _typed(factory: ConnectorFactory, name: str, text: str) -> Any:
    from rowmerge_nb.spi.factory import PropertyType

    value_type = factory.properties[name].type if name in factory.properties else None
    if value_type == PropertyType.BOOLEAN:
        return {"true": True, "false": False}.get(text.lower(), text)
    if value_type == PropertyType.INTEGER:
        with suppress(ValueError):
            return int(text)
    if value_type in {PropertyType.TEXTS, PropertyType.PATHS}:
        return [part.strip() for part in text.split(",")]
    return text


def _ask(line: ConnectLine) -> str:
    try:
        password = getpass.getpass(f"Password for {masked(line.location or line.store)}: ")
    except Exception as error:
        # Nothing can be typed in a notebook that a program runs.
        raise RowMergeError.invalid(
            f"The password cannot be typed here: {error}",
            hint="Set PGPASSWORD, write ~/.pgpass, or write password='${ENV:NAME}'.",
        ) from error
    if not password:
        _refuse("The password is empty", "Type it, or omit --password.")
    return password


_SCHEMAS: Final = {"sqlite": "main", "postgresql": "public"}
"""The usual schema of stores that have no schema ``default``."""


_ERA: Final = (
    " Sinks get the halves of an UPDATE as operations 2 and 1, as in the design documents; today's"
    ' Trino sends 5 and 4: %config MergeMagic.era = "current".'
)
"""A plugin that does not know 4 and 5 works without them, and loses rows in Trino."""


def connected_bundle(connection: Connection) -> Bundle:
    location = f" {connection.location}" if connection.location else ""
    name, schema = connection.name, _SCHEMAS.get(connection.store, "default")
    return text_bundle(
        f"Catalog {connection.name} is connected: {connection.store}{location}."
        f" Its tables are {name}.SCHEMA.TABLE, for example {name}.{schema}.orders; SHOW SCHEMAS"
        f" FROM {name} lists the schemas.{_ERA if connection.store == 'trino' else ''}"
    )


def catalogs_bundle(engine: Engine) -> Bundle:
    from rowmerge_nb.engine.catalog.store_registry import store_names

    connections = engine.catalogs()
    rows = [
        [
            each.name,
            each.store,
            f"not connected: {each.problem}" if each.problem else each.location,
            each.origin,
        ]
        for each in connections
    ]
    connected = sum(not each.problem for each in connections)
    return grid_bundle(
        ["catalog", "store", "location", "connected by"],
        rows,
        f"{plural(connected, 'catalog')}. {FORM} connects one; the stores are"
        f" {', '.join(store_names())}.",
    )


def secrets_of_text(text: str) -> set[str]:
    """Return the passwords that are written in a line, even in one with mistakes.

    >>> secrets_of_text("postgresql://ann:s3cret@db/shop AS pg"), secrets_of_text("iceberg w AS ice")
    ({'s3cret'}, set())
    >>> secrets_of_text("postgresql://ann@db/shop password=${ENV:PW}")
    set()
    """
    return {each for each in secrets_in(text) if not re.fullmatch(r"\$\{ENV:\w+\}", each)}


def password_notice(shell: InteractiveShell, secrets: set[str]) -> str:
    """Mask the passwords of the running cell where that is possible, and return what was done.

    IPython's history shows them as ``***``. A front end that replaces cells on request gets the
    cell without them; elsewhere they stay in the cell.
    """
    cell = _running_cell(shell)
    new_cell = _without_passwords(cell, secrets)
    is_masked = _hide_in_history(shell, secrets)
    history = (
        "IPython's history shows it as ***."
        if is_masked
        else "The file of IPython's history could not be changed and still contains it."
    )
    if new_cell and getattr(shell, "kernel", None) is not None:
        shell.set_next_input(new_cell, replace=True)
    return (
        f"The cell has a password. {history} Remove it from the cell before you save the notebook:"
        " --password asks for it; PGPASSWORD and ~/.pgpass are read too."
    )


def _running_cell(shell: InteractiveShell) -> str:
    history = getattr(shell, "history_manager", None)
    return str(history.input_hist_raw[-1]) if history and history.input_hist_raw else ""


def _without_passwords(cell: str, secrets: set[str]) -> str:
    r"""Return a cell whose lines ask for their passwords, or ``""`` if that takes more than
    removing passwords.

    >>> _without_passwords("x = 1\n%merge connect postgresql://ann:s3@db/shop AS pg", {"s3"})
    'x = 1\n%merge connect postgresql://ann@db/shop AS pg --password'
    """
    lines = cell.split("\n")
    for number, line in enumerate(lines):
        bare = line
        for secret in secrets:
            bare = bare.replace(f":{secret}@", "@").replace(f" password={secret}", "")
        if bare != line:
            lines[number] = bare if "--password" in bare else f"{bare.rstrip()} --password"
    text = "\n".join(lines)
    return "" if text == cell or any(secret in text for secret in secrets) else text


def _hide_in_history(shell: InteractiveShell, secrets: set[str]) -> bool:
    """Mask secrets in the inputs that IPython keeps, and return whether its file has none."""
    history = getattr(shell, "history_manager", None)
    if history is None:
        return True

    def hide(text: Any) -> Any:
        if not isinstance(text, str) or "connect" not in text:
            return text
        for secret in secrets:
            # The transformed cell has the line as a Python literal.
            for form in (secret, repr(secret)[1:-1]):
                text = text.replace(form, "***")
        return text

    # Another thread writes the file; this is its lock.
    with history.db_input_cache_lock:
        history.db_input_cache = [
            (number, hide(source), hide(raw)) for number, source, raw in history.db_input_cache
        ]
    for inputs in (history.input_hist_parsed, history.input_hist_raw):
        inputs[:] = [hide(text) for text in inputs]
    for name in ("_i", "_ii", "_iii", "_i00"):
        setattr(history, name, hide(getattr(history, name)))
    for name, value in list(shell.user_ns.items()):
        if re.fullmatch(r"_i+|_i\d+", name):
            shell.user_ns[name] = hide(value)
    return not history.enabled or _hide_in_file(history, hide)


def _hide_in_file(history: Any, hide: Callable[[Any], Any]) -> bool:
    import sqlite3

    try:
        history.writeout_cache()
        with history.db:
            rows = history.db.execute(
                "SELECT line, source, source_raw FROM history WHERE session = ?",
                (history.session_number,),
            ).fetchall()
            for number, *texts in rows:
                masked_texts = [hide(text) for text in texts]
                if masked_texts != texts:
                    history.db.execute(
                        "UPDATE history SET source = ?, source_raw = ?"
                        " WHERE session = ? AND line = ?",
                        (*masked_texts, history.session_number, number),
                    )
    except sqlite3.Error:
        return False
    return True


def _form_hint() -> str:
    return f"Write {FORM}."


def _refuse(message: str, hint: str) -> NoReturn:
    raise RowMergeError.invalid(message, hint=hint)
