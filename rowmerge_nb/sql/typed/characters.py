"""Characters that Java counts as white space or as digits."""

from __future__ import annotations

from typing import Final

WHITE: Final = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f"
    " \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
)
"""The characters that Java's `Character.isWhitespace` accepts.

Trino trims them, also in casts of text to dates and timestamps.
"""

_ZEROS: Final = (
    "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50\u0ed0\u0f20\u1040\u1090"
    "\u17e0\u1810\u1946\u19d0\u1a80\u1a90\u1b50\u1bb0\u1c40\u1c50\ua620\ua8d0\ua900\ua9d0\ua9f0\uaa50\uabf0\uff10"
)
OTHER_DIGITS: Final = "".join(chr(ord(zero) + digit) for zero in _ZEROS for digit in range(10))
"""The decimal digits of all scripts beyond ASCII, from zero to nine each; of those that Java keeps
in one unit of text.
"""
