"""Rules that hold in every synthetic row: what a schema says about columns together.

A rule is a public fact, like a bound. It is kept in the words of whoever wrote it;
`core.rule_laws` reads it against the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gibbous.core.column import Level
from gibbous.core.errors import UsageError
from gibbous.core.keywords import answering_class

FORMS = (
    ("require",),
    ("when", "then"),
    ("detail", "group", "map"),
    ("columns", "allowed"),
    ("columns", "forbidden"),
)


@answering_class
@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, in one of five forms.

    Attributes:
        require: what every row meets: "start <= end", "0 <= end - start <= 365", "total == a + b".
        when, then: what rows meet that meet a condition: "age < 15", "marital == 'never'".
        detail, group, map: a column of levels, the column that it determines, and (level, value) pairs;
            a mapping is taken, too.
        bought: the map is not public: a method buys it with a share of its budget (`paid_bins`).
        columns, allowed, forbidden: columns of levels, and the combinations that are the only ones to
            occur, or that do not occur, each as long as `columns`.

    Example:
        >>> Rule(when="age < 15", then="marital == 'never'").words()
        "if age < 15 then marital == 'never'"
    """

    require: str = ""
    when: str = ""
    then: str = ""
    detail: str = ""
    group: str = ""
    map: tuple[tuple[str, Level], ...] | Mapping[Level, Level] = ()
    columns: tuple[str, ...] = ()
    allowed: tuple[tuple[Level, ...], ...] = ()
    forbidden: tuple[tuple[Level, ...], ...] = ()
    bought: bool = False

    def __post_init__(self) -> None:
        pairs = self.map.items() if isinstance(self.map, Mapping) else self.map
        object.__setattr__(self, "map", tuple((str(one), other) for one, other in pairs))
        object.__setattr__(self, "columns", tuple(self.columns))
        for name in ("allowed", "forbidden"):
            object.__setattr__(self, name, tuple(map(tuple, getattr(self, name))))
        given = {name for name in self.__slots__ if getattr(self, name)}
        if given in ({"detail", "group", "bought"}, {"detail", "group", "map", "bought"}):
            return
        if given == {"detail", "group"}:
            raise refused(
                f"{self.detail} determines {self.group}",
                "has no map",
                "A map says which group each level of the detail belongs to: it is public, or paid for",
                "Give map, as a table or as the name of a CSV file, or say bought = true",
            )
        if given not in [set(form) for form in FORMS]:
            raise refused(
                ", ".join(sorted(given)) or "empty",
                "is in none of the forms of a rule",
                "A rule has require; or if and then; or detail, group and map; or columns and allowed "
                "(or forbidden)",
                "Complete it, or split it into several rules",
            )

    @property
    def to_buy(self) -> bool:
        """Whether its map is not yet known: until it is bought, it says nothing about rows."""
        return self.bought and not self.map

    def words(self) -> str:
        """The rule for people."""
        if self.require:
            return self.require
        if self.when:
            return f"if {self.when} then {self.then}"
        if self.detail:
            return f"{self.detail} determines {self.group}"
        which = "allowed" if self.allowed else "forbidden"
        return f"{which} combinations of {', '.join(self.columns)}"


def refused(rule: str, wrong: str, allowed: str, fix: str) -> UsageError:
    """The error for a rule that cannot be used; `fix` without its full stop."""
    end = "" if fix.endswith("?") else " in the schema."
    return UsageError("RULE", f"The rule ({rule}) {wrong}.", f"{allowed}.", f"{fix}{end}")
