"""The grammar of roles, privileges and owners."""

from __future__ import annotations

from typing import Final

from rowmerge_nb.errors import ParseError
from rowmerge_nb.sql.parser.merge import MergeReader
from rowmerge_nb.sql.tree import statements as st

_PRIVILEGES: Final = ("CREATE", "DELETE", "INSERT", "SELECT", "UPDATE")


class AccessReader(MergeReader):
    """Reads GRANT, REVOKE, DENY, what makes and shows roles, and who is to own something."""

    def _grant(self) -> st.RoleStatement | st.PrivilegeStatement:
        self.take()
        names, all_of_them = self._privileges("TO")
        if all_of_them or self.expect("ON", "TO").word == "ON":
            return self._on_object("GRANT", names, "TO", taken=not all_of_them)
        self._principals()
        if self.accept("WITH"):
            self.expect("ADMIN")
            self.expect("OPTION")
        return self._of_roles("GRANT", names)

    def _revoke(self) -> st.RoleStatement | st.PrivilegeStatement:
        self.take()
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
            return self._on_object("REVOKE", names, "FROM", taken=not all_of_them)
        self._principals()
        return self._of_roles("REVOKE", names)

    def _deny(self) -> st.PrivilegeStatement:
        self.take()
        names, all_of_them = self._privileges()
        if not all_of_them:
            self.expect("ON")
        return self._on_object("DENY", names, "TO", taken=not all_of_them)

    def _on_object(self, kind: str, names: tuple[st.Identifier, ...], before: str, *, taken: bool) -> st.PrivilegeStatement:
        """Read what privileges are about, and who has them.

        Args:
            kind: the statement's word.
            names: the privileges.
            before: the word before who has them.
            taken: ON was taken already.
        """
        if not taken:
            self.expect("ON")
        about, name = self._object(before)
        self.expect(before)
        self._principal()
        if kind == "GRANT" and self.accept("WITH"):
            self.expect("GRANT")
            self.expect("OPTION")
        return st.PrivilegeStatement(*self.whole(), kind, names, about, name)

    def _privileges(self, end: str = "", *, has_all: bool = True) -> tuple[tuple[st.Identifier, ...], bool]:
        """Read privileges or roles; tell whether ALL PRIVILEGES stands in their place."""
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

    def _object(self, before: str) -> tuple[str, st.TableName]:
        """Read what privileges are about, with what kind of thing it is, which may be any word."""
        self.note("'SCHEMA'")
        named = self.ahead().word == before and (not before or self.at_identifier(self.ahead(2)))
        about = "TABLE"
        if self.at("TABLE") or (self.at_identifier() and self.at_identifier(self.ahead()) and not named):
            about = self.take().word
        return about, self.table_name()

    def _of_roles(self, kind: str, names: tuple[st.Identifier, ...]) -> st.RoleStatement:
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
        return st.RoleStatement(*self.whole(), kind, names[0], self._in_catalog())

    def _principal(self) -> st.Identifier | None:
        """Read who owns or may do something; give it if it is a role."""
        self.note("'ROLE'", "'USER'")
        word = ""
        if self.token.word in {"ROLE", "USER"} and self.at_identifier(self.ahead()):
            word = self.take().word
        name = self.identifier()
        return name if word == "ROLE" else None

    def _principals(self) -> None:
        self._principal()
        while self.accept(","):
            self._principal()

    def _grantor(self) -> None:
        if not self.accept("CURRENT_ROLE", "CURRENT_USER"):
            self._principal()

    def _in_catalog(self, *words: str) -> st.Identifier | None:
        """Read ``IN catalog``; of SHOW also ``FROM catalog``."""
        return self.identifier() if self.accept(*words, "IN") else None

    # -- roles ----------------------------------------------------------------------------------------------------

    def _create_role(self) -> st.RoleStatement:
        """Read what stands behind CREATE ROLE."""
        name = self.identifier()
        if self.accept("WITH"):
            self.expect("ADMIN")
            self._grantor()
        return st.RoleStatement(*self.whole(), "CREATE ROLE", name, self._in_catalog())

    def _drop_role(self) -> st.RoleStatement:
        """Read what stands behind DROP ROLE."""
        if_exists = self._accept_if("EXISTS")
        name = self.identifier()
        return st.RoleStatement(*self.whole(), "DROP ROLE", name, self._in_catalog(), if_exists)

    def _set_role(self) -> st.RoleStatement:
        """Read what stands behind SET ROLE."""
        role = None if self.accept("ALL", "NONE") else self.identifier()
        return st.RoleStatement(*self.whole(), "SET ROLE", role, self._in_catalog())

    def _show_roles(self) -> st.RoleStatement | st.PrivilegeStatement:
        """Read what stands behind SHOW, if it is about roles or privileges."""
        word = self.take().word
        if word == "GRANTS":
            about, name = self._object("") if self.accept("ON") else ("TABLE", None)
            return st.PrivilegeStatement(*self.whole(), "SHOW GRANTS", (), about, name)
        if word != "ROLES":
            word = f"{word} {self.expect('ROLES' if word == 'CURRENT' else 'GRANTS').word}"
        return st.RoleStatement(*self.whole(), f"SHOW {word}", None, self._in_catalog("FROM"))

    # -- owners ---------------------------------------------------------------------------------------------------

    def _authorization(self, about: str, name: st.TableName) -> st.SetAuthorization:
        """Read what stands behind SET AUTHORIZATION."""
        return st.SetAuthorization(*self.whole(), about, name, self._principal())

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
    """What may follow the names of a REVOKE: an option is that of roles, or of privileges."""
    return {"ADMIN": ("FROM",), "GRANT": ("ON",)}.get(option, ("FROM", "ON"))
