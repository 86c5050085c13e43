"""Texts that noisy counts showed in, all codes that are written as they are out: public."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

ALIKE = 5  # texts that are written alike, from which on others are looked for
CLEAR = (
    2.0  # standard deviations above which such a code is a level: by noise alone one in forty is
)
_FORM = re.compile(r"(.*?)([0-9]{1,3})", re.DOTALL)


def code_list(kept: Iterable[str]) -> tuple[str, ...]:
    """The codes that may stand beside those that were kept, as 415 and 417 beside 414, 416, 418 and so on.

    Codes are alike that begin alike and end with as many digits, at most three. Where at least ALIKE were
    kept, their numbers from half of the least up to twice the greatest make the list.
    """
    numbers = defaultdict[tuple[str, int], list[int]](list)
    for text in kept:
        if code := _FORM.fullmatch(text):
            numbers[code[1], len(code[2])].append(int(code[2]))
    return tuple(
        f"{begin}{number:0{digits}}"
        for (begin, digits), found in numbers.items()
        if len(found) >= ALIKE
        for number in range(min(found) // 2, min(2 * max(found), 10**digits - 1) + 1)
    )
