"""The grammar of roles, privileges and owners, which is parsed and refused."""

from __future__ import annotations

from typing import Final, NoReturn

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.parser.change_reader import ChangeReader
from rowmerge_nb.sql.tree import statements as st

NO_USERS: Final = "The engine has no users, roles or privileges: leave it out."
_PRIVILEGES: Final = ("CREATE", "DELETE", "INSERT", "SELECT", "UPDATE")


class AccessReader(ChangeReader):
    """Parses and refuses GRANT, REVOKE, DENY, the statements of roles, and SET AUTHORIZATION."""

    def _refuse_later(
        self, start: int, message: str | None = None, hint: str | None = None
    ) -> None:
        words = " ".join(token.word for token in self.tokens[start : self.index])
        message = message or f"The statement {words} is not supported by this engine"
        self.refused(ParseError.unsupported(message, hint=hint).at(self.tokens[start].span))

    def _refuse_read(self) -> NoReturn:
        self.expect_end()
        self.check()
        self.fail()

    def _take_refused(self) -> None:
        self.take()
        self._refuse_later(self.index - 1, hint=NO_USERS)

    # -- privileges

    def _grant(self) -> NoReturn:
        self._take_refused()
        names, all_of_them = self._privileges("TO")
        if all_of_them or self.expect("ON", "TO").word == "ON":
            self._on_object("TO", is_on_taken=not all_of_them, grants=True)
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
            self._on_object("FROM", is_on_taken=not all_of_them)
        self._principals()
        self._of_roles(names)

    def _deny(self) -> NoReturn:
        self._take_refused()
        _, all_of_them = self._privileges()
        if not all_of_them:
            self.expect("ON")
        self._on_object("TO", is_on_taken=not all_of_them)

    def _on_object(self, before: str, *, is_on_taken: bool, grants: bool = False) -> NoReturn:
        if not is_on_taken:
            self.expect("ON")
        self._object(before)
        self.expect(before)
        self._principal()
        if grants and self.accept("WITH"):
            self.expect("GRANT")
            self.expect("OPTION")
        self._refuse_read()

    def _privileges(
        self, end: str = "", *, has_all: bool = True
    ) -> tuple[tuple[st.Identifier, ...], bool]:
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
        self.note("'SCHEMA'")
        is_name = self.ahead().word == before and (not before or self.at_identifier(self.ahead(2)))
        if self.at("TABLE") or (
            self.at_identifier() and self.at_identifier(self.ahead()) and not is_name
        ):
            self.take()
        self.table_name()

    def _of_roles(self, names: tuple[st.Identifier, ...]) -> NoReturn:
        if self.accept("GRANTED"):
            self.expect("BY")
            self._grantor()
        wrong = next((name for name in names if name.text.upper() in _PRIVILEGES), None)
        if wrong is not None:
            self.refused(
                ParseError(
                    "May not use a privilege name as a role name",
                    hint="Write ON and a table behind a privilege.",
                ).at(wrong.span)
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
        if self.accept(*words, "IN"):
            self.identifier()
        self._refuse_read()

    # -- roles

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
        word = self.take().word
        self._refuse_later(start, hint=NO_USERS)
        if word == "GRANTS":
            if self.accept("ON"):
                self._object("")
            self._refuse_read()
        if word != "ROLES":
            self.expect("ROLES" if word == "CURRENT" else "GRANTS")
        self._in_catalog("FROM")

    # -- owners

    def _authorization(self, start: int) -> NoReturn:
        self._refuse_later(
            start, "ALTER ... SET AUTHORIZATION is not supported by this engine", NO_USERS
        )
        self._principal()
        self._refuse_read()

    def _accept_if(self, *words: str) -> bool:
        if self.token.word != "IF" or self.ahead().word != words[0]:
            self.note("'IF'")
            return False
        self.take()
        for word in words:
            self.expect(word)
        return True


def _ends(option: str) -> tuple[str, ...]:
    return {"ADMIN": ("FROM",), "GRANT": ("ON",)}.get(option, ("FROM", "ON"))
