"""Fields of a plugin's handles that JSON does not carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NOTHING: Final = frozenset(
    {"null", "Optional.empty", "OptionalInt.empty", "[]", "{}", "0", "false"}
)
"""What Java prints for a field that has no value."""
_LONGEST: Final = 60


def lost_fields(differences: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each field whose value is gone after the trip through JSON.

    A field is not lost if Java prints it with an address, or if the class omits it on purpose, by
    @JsonIgnore.

    >>> list(lost_fields([{"class": "shop.ShopMerge", "field": "shelf", "before": "A7", "after": "null"}]))
    ["A handle loses a value on its way to the tasks: ShopMerge.shelf was 'A7', and is null after JSON. Add it to the class's @JsonProperty methods and its @JsonCreator."]
    >>> list(lost_fields([{"class": "C", "field": "cache", "before": "C@1", "after": "C@2"}]))
    []
    """
    for each in differences:
        before, after = str(each["before"]), str(each["after"])
        if not each.get("ignored") and after in _NOTHING and before not in _NOTHING:
            owner = str(each["class"]).rpartition(".")[2]
            value = before if len(before) <= _LONGEST else f"{before[:_LONGEST]}…"
            yield (
                "A handle loses a value on its way to the tasks:"
                f" {owner}.{each['field']} was {value!r}, and is {after} after JSON. Add it to the"
                " class's @JsonProperty methods and its @JsonCreator."
            )
