"""Texts that noisy counts showed in, what is written alike or stands near them out: public."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from gibbous.read.public_lists import text_lists
from gibbous.read.text_forms import MAYBE

ALIKE = 5  # texts that are written alike, from which on others are looked for
NAMES, LONG = 2, 4  # so many do where each has so many letters: Mexico and France, unlike ME and FR
MOSTLY = 0.8  # of the texts, from which on a public list is theirs
REST = {*MAYBE, "other"}  # texts that stand beside those of any list
CLEAR = 2.0  # standard deviations above which such a code is a level: by noise alone 1 in 40 is
BESIDE = 4  # whole numbers on each side of one that was kept that are looked for
FALSE = 2.5  # the same of whole numbers beside levels that hold about all cells
SURE = 4.0  # standard deviations that noise alone seldom reaches
RARE = 0.005  # share of the cells that may be lost
DIGITS = tuple(map(str, range(10)))
"""Whole numbers that are usual as codes."""
PAIRS = ("yes no", "true false", "male female", "y n", "t f", "m f")
_CASES = (str.lower, str.upper, str.title)
_WRITTEN: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper)
_GAPS = (" ", "-", "_", ".", "")
WORDS = tuple(dict.fromkeys(case(word) for p in PAIRS for word in p.split() for case in _CASES))
"""Texts that are usual as levels."""
_FORM = re.compile(r"(.*?)([0-9]{1,3})", re.DOTALL)


def code_list(kept: Iterable[str]) -> tuple[str, ...]:
    """The codes that may stand beside those that were kept, as 415 and 417 beside 414, 416, 418 and so on.

    Codes are alike that begin alike and end with as many digits, at most three. Where at least ALIKE were
    kept, their numbers from half of the least up to twice the greatest make the list. Where at least ALIKE
    (of long ones, NAMES), and MOSTLY all of them, are of a list that is public (months, states, countries),
    all of it does, written as they are.
    """
    numbers, texts = defaultdict[tuple[str, int], list[int]](list), dict.fromkeys(kept)
    shared, _, public = max(
        (len(texts.keys() & levels), -len(levels), levels) for levels in _written_lists()
    )
    telling = [text for text in texts if text.lower() not in REST]
    least = NAMES if all(len(text) >= LONG for text in telling) else ALIKE
    listed = dict.fromkeys(public if shared >= max(least, MOSTLY * len(telling)) else ())
    for text in texts:
        if code := _FORM.fullmatch(text):
            numbers[code[1], len(code[2])].append(int(code[2]))
    return tuple(
        listed
        | {
            f"{begin}{number:0{digits}}": None
            for (begin, digits), found in numbers.items()
            if len(found) >= ALIKE
            for number in range(min(found) // 2, min(2 * max(found), 10**digits - 1) + 1)
        }
    )


@functools.cache
def _written_lists() -> list[tuple[str, ...]]:
    """Public lists in all usual ways to write them: Puerto Rico, Puerto-Rico, PUERTO_RICO."""
    found = (
        tuple(case(text).replace(" ", gap) for text in levels)
        for levels in text_lists()
        for case in _WRITTEN
        for gap in _GAPS
    )
    return list(dict.fromkeys(found))


def answers(texts: Iterable[str]) -> bool:
    """Whether texts are a usual pair such as yes and no, beside which no other text is likely."""
    return {text.lower() for text in texts} in [set(pair.split()) for pair in PAIRS]


def numbers_beside(kept: Iterable[str], most: int) -> tuple[str, ...]:
    """The whole numbers near those that were kept, as 4 and 5 beside 1, 2 and 3; none where many were.

    Args:
        kept: whole numbers, as texts.
        most: so many of them may be levels.
    Returns:
        Texts, each once, `kept` among them; below 0 only where `kept` has numbers below 0.
    """
    found = set(map(int, kept))
    if len(found) > most:
        return ()
    near = {number + step for number in found for step in range(-BESIDE, BESIDE + 1)}
    signed = any(number < 0 for number in found)
    return tuple(str(number) for number in sorted(near) if signed or number >= 0)


def held_from(present: float, sigma: float, *, hidden: bool) -> float:
    """Noisy rows above which a whole number of a list is a level.

    One standard deviation where RARE of the cells are no more than that and some are clearly hidden: what
    is lost costs more then than a level that nobody has. FALSE of them where the levels that were kept hold
    about all cells. Where noise is smaller, up to SURE of them.

    Args:
        present: cells that are not missing, about.
        sigma: standard deviation of one count.
        hidden: whether noisy counts show cells without a level.
    """
    return max(sigma * (1 if hidden else FALSE), min(SURE * sigma, RARE * present))
