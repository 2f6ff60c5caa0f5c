"""The grammar of roles, privileges and owners: it is read so that syntax errors have their places, and refused."""

from __future__ import annotations

from typing import Final, NoReturn

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.parser.merge_reader import MergeReader
from rowmerge_nb.sql.tree import statements as st

NO_USERS: Final = "The engine has no users, roles or privileges: leave it out."
_PRIVILEGES: Final = ("CREATE", "DELETE", "INSERT", "SELECT", "UPDATE")


class AccessReader(MergeReader):
    """Reads and refuses GRANT, REVOKE, DENY, the statements of roles, and SET AUTHORIZATION."""

    def _refuse_later(self, start: int, message: str | None = None, hint: str | None = None) -> None:
        """Record that the statement is refused after it is read: a syntax error in it comes first.

        Args:
            start: the token that the error points at.
            message: the message; by default it names the words that were taken since ``start``.
            hint: the hint.
        """
        words = " ".join(token.word for token in self.tokens[start : self.index])
        message = message or f"The statement {words} is not supported by this engine"
        self.refused(ParseError(message, code="NOT_SUPPORTED", hint=hint).at(self.tokens[start].span))

    def _refuse_read(self) -> NoReturn:
        """End a statement that is refused."""
        self.expect_end()
        self.check()
        self.fail()

    def _take_refused(self) -> None:
        """Take the first word of a statement about privileges, and record that the statement is refused."""
        self.take()
        self._refuse_later(self.index - 1, hint=NO_USERS)

    # -- privileges -----------------------------------------------------------------------------------------------

    def _grant(self) -> NoReturn:
        self._take_refused()
        names, all_of_them = self._privileges("TO")
        if all_of_them or self.expect("ON", "TO").word == "ON":
            self._on_object("TO", taken=not all_of_them, grants=True)
        self._principals()
        if self.accept("WITH"):
            self.expect("ADMIN")
            self.expect("OPTION")
        self._of_roles(names)

    def _revoke(self) -> NoReturn:
        self._take_refused()
        self.note("'ADMIN'", "'GRANT'")
        option = ""
        if self.token.word in {"ADMIN", "GRANT"}:
            behind = self.ahead().word
            self.index += 1
            self.note("'OPTION'")
            self.index -= 1
            if behind == "OPTION":
                option = self.take().word
                self.take()
                self.expect("FOR")
        names, all_of_them = self._privileges("FROM", has_all=option != "ADMIN")
        if all_of_them or self.expect(*_ends(option)).word == "ON":
            self._on_object("FROM", taken=not all_of_them)
        self._principals()
        self._of_roles(names)

    def _deny(self) -> NoReturn:
        self._take_refused()
        _, all_of_them = self._privileges()
        if not all_of_them:
            self.expect("ON")
        self._on_object("TO", taken=not all_of_them)

    def _on_object(self, before: str, *, taken: bool, grants: bool = False) -> NoReturn:
        """Read the object of privileges, and who has them.

        Args:
            before: the word before who has them.
            taken: ON was taken already.
            grants: WITH GRANT OPTION may follow.
        """
        if not taken:
            self.expect("ON")
        self._object(before)
        self.expect(before)
        self._principal()
        if grants and self.accept("WITH"):
            self.expect("GRANT")
            self.expect("OPTION")
        self._refuse_read()

    def _privileges(self, end: str = "", *, has_all: bool = True) -> tuple[tuple[st.Identifier, ...], bool]:
        """Read privileges or roles; return them, and whether ALL PRIVILEGES is in their place."""
        if has_all and self.accept("ALL"):
            self.note("','", "'ON'", *([f"'{end}'"] if end == "TO" else []))
            self.expect("PRIVILEGES")
            return (), True
        names = [self._privilege()]
        while self.accept(","):
            names.append(self._privilege())
        return tuple(names), False

    def _privilege(self) -> st.Identifier:
        token = self.accept(*_PRIVILEGES)
        return self.identifier() if token is None else st.Identifier(token.text, token.span)

    def _object(self, before: str) -> None:
        """Read the object of privileges, with the word for its type, which may be any word."""
        self.note("'SCHEMA'")
        is_name = self.ahead().word == before and (not before or self.at_identifier(self.ahead(2)))
        if self.at("TABLE") or (self.at_identifier() and self.at_identifier(self.ahead()) and not is_name):
            self.take()
        self.table_name()

    def _of_roles(self, names: tuple[st.Identifier, ...]) -> NoReturn:
        """Read the end of a GRANT or REVOKE of roles."""
        if self.accept("GRANTED"):
            self.expect("BY")
            self._grantor()
        wrong = next((name for name in names if name.text.upper() in _PRIVILEGES), None)
        if wrong is not None:
            self.refused(
                ParseError("May not use a privilege name as a role name", hint="Write ON and a table behind a privilege.").at(
                    wrong.span
                )
            )
        self._in_catalog()

    def _principal(self) -> None:
        self.note("'ROLE'", "'USER'")
        if self.token.word in {"ROLE", "USER"} and self.at_identifier(self.ahead()):
            self.take()
        self.identifier()

    def _principals(self) -> None:
        self._principal()
        while self.accept(","):
            self._principal()

    def _grantor(self) -> None:
        if not self.accept("CURRENT_ROLE", "CURRENT_USER"):
            self._principal()

    def _in_catalog(self, *words: str) -> NoReturn:
        """Read ``IN catalog``, which SHOW also writes ``FROM catalog``, and end the statement."""
        if self.accept(*words, "IN"):
            self.identifier()
        self._refuse_read()

    # -- roles ----------------------------------------------------------------------------------------------------

    def _create_role(self, start: int) -> NoReturn:
        self.take()
        self._refuse_later(start, hint=NO_USERS)
        self.identifier()
        if self.accept("WITH"):
            self.expect("ADMIN")
            self._grantor()
        self._in_catalog()

    def _drop_role(self, start: int) -> NoReturn:
        self.take()
        self._refuse_later(start, hint=NO_USERS)
        self._accept_if("EXISTS")
        self.identifier()
        self._in_catalog()

    def _set_role(self, start: int) -> NoReturn:
        self._refuse_later(start, hint=NO_USERS)
        if not self.accept("ALL", "NONE"):
            self.identifier()
        self._in_catalog()

    def _show_roles(self, start: int) -> NoReturn:
        """Read the rest of a SHOW of roles or privileges."""
        word = self.take().word
        self._refuse_later(start, hint=NO_USERS)
        if word == "GRANTS":
            if self.accept("ON"):
                self._object("")
            self._refuse_read()
        if word != "ROLES":
            self.expect("ROLES" if word == "CURRENT" else "GRANTS")
        self._in_catalog("FROM")

    # -- owners ---------------------------------------------------------------------------------------------------

    def _authorization(self, start: int) -> NoReturn:
        """Read the principal of ALTER ... SET AUTHORIZATION, and end the statement."""
        self._refuse_later(start, "ALTER ... SET AUTHORIZATION is not supported by this engine", NO_USERS)
        self._principal()
        self._refuse_read()

    def _accept_if(self, *words: str) -> bool:
        """Take ``IF EXISTS`` or ``IF NOT EXISTS``; a name may be IF too."""
        if self.token.word != "IF" or self.ahead().word != words[0]:
            self.note("'IF'")
            return False
        self.take()
        for word in words:
            self.expect(word)
        return True


def _ends(option: str) -> tuple[str, ...]:
    """Return the words that may follow the names of a REVOKE: an option is that of roles, or of privileges."""
    return {"ADMIN": ("FROM",), "GRANT": ("ON",)}.get(option, ("FROM", "ON"))
