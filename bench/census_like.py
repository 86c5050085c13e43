"""A table like a census: detailed and grouped codes, and many columns that only some people are asked for.

People are children, employees, self-employed, retired or at home, in eight social groups; 0 is "not in
universe". 41 columns, of which most are tied to others by classification or by who is asked.
"""

from __future__ import annotations

import numpy as np
from accuracy_small import Table, by_class


class Census:
    """Columns that are drawn one after the other, given those before."""

    def __init__(self, rows: int, rng: np.random.Generator) -> None:
        self.rows, self.rng = rows, rng
        self.columns: list[np.ndarray] = []
        self.sizes: list[int] = []

    def add(self, codes: np.ndarray, size: int) -> np.ndarray:
        """Enter a column of so many levels."""
        self.columns.append(codes.astype(np.int64))
        self.sizes.append(size)
        return codes

    def skewed(self, size: int, power: float) -> np.ndarray:
        """Zipf's law over levels in random order."""
        law = 1 / np.arange(1, size + 1) ** power
        return self.rng.permutation(law / law.sum())

    def given(self, cause: np.ndarray, causes: int, size: int, alike: float) -> np.ndarray:
        """A draw from the law of each cause; laws are the closer, the larger `alike`."""
        base = self.skewed(size, self.rng.uniform(0.6, 1.6))
        laws = self.rng.dirichlet(np.maximum(base * alike, 1e-3), size=causes)
        return by_class(laws, cause, self.rng)

    def grouped(self, codes: np.ndarray, groups: np.ndarray, size: int, wrong: float) -> np.ndarray:
        """A coarser classification, but for a share of the rows."""
        found, apart = groups[codes], self.rng.random(self.rows) < wrong
        return self.add(np.where(apart, self.rng.integers(0, size, self.rows), found), size)


def census(rows: int, rng: np.random.Generator) -> Table:
    """41 columns of 2 to 60 levels."""
    one = Census(rows, rng)
    life = rng.choice(5, size=rows, p=rng.dirichlet([4, 5, 3, 2, 2]))
    works = (life == 1) | (life == 2)
    age = one.add(one.given(life, 5, 16, 4), 16)
    sex = one.add(rng.integers(0, 2, rows), 2)
    social = rng.choice(8, size=rows, p=rng.dirichlet(np.full(8, 2.0)))
    both = life * 8 + social
    for _ in range(3):  # industry, occupation and the like: detailed, and grouped
        size = int(rng.integers(20, 60))
        fine = one.add(np.where(works, 1 + one.given(both * 2 + sex, 80, size, 6), 0), size + 1)
        fewer = max(4, int(size / rng.uniform(1.8, 3)))
        groups = np.concatenate([[0], 1 + rng.integers(0, fewer, size)])
        one.grouped(fine, groups, fewer + 1, rng.uniform(0, 0.01))
    one.add(np.where(works, 1 + one.given(both, 40, 7, 3), 0), 8)
    household = one.add(one.given(life * 16 + age, 80, 38, 5), 38)
    summary = one.grouped(household, rng.integers(0, 8, 38), 8, 0.0)
    one.grouped(summary, rng.integers(0, 3, 8), 3, 0.0)
    one.add(one.given(life * 8 + summary, 40, 6, 1), 6)
    year = one.add(rng.integers(0, 2, rows), 2)
    moved = one.add(np.where(year == 0, 0, 1 + one.given(age, 16, 9, 5)), 10)
    for size in (9, 10, 4, 3):
        one.grouped(moved, rng.integers(0, size, 10), size, 0.005)
    for size in (50, 5):  # where from
        one.add(np.where(moved >= 6, 1 + one.given(social, 8, size, 20), 0), size + 1)
    foreign = np.where(rng.random(rows) < 0.8, 0, rng.choice(43, rows, p=one.skewed(43, 1.2)))
    father = one.add(foreign, 43)
    other = rng.choice(43, rows, p=one.skewed(43, 1.2)) * (rng.random(rows) < 0.3)
    mother = one.add(np.where(rng.random(rows) < 0.9, father, other), 43)
    born = one.add(np.where(rng.random(rows) < 0.4, mother, 0), 43)
    one.add(np.where(born == 0, 0, 1 + one.given(social, 8, 4, 5)), 5)
    one.add(one.given((foreign > 0).astype(int), 2, 5, 3), 5)
    one.add(one.given((foreign > 0) * 8 + social, 16, 10, 3), 10)
    school = one.add(one.given(both * 16 + age, 640, 17, 3), 17)
    one.add(one.given(life * 16 + age, 80, 7, 2), 7)
    for size in (3, 6, 8, 3, 3, 5, 6):
        one.add(one.given(life * 2 + sex, 10, size, 2), size)
    for size in (6, 11, 11):
        asked = works & (rng.random(rows) < 0.2)
        one.add(np.where(asked, 1 + one.given(social, 8, size, 5), 0), size + 1)
    one.add(one.given(life, 5, 53, 3), 53)
    pay = -3 + (1.2 + 0.075 * school + 0.6 * sex) * works + rng.normal(0, 1, 8)[social]
    one.add((rng.random(rows) < 1 / (1 + np.exp(-pay))).astype(int), 2)
    return Table("census", np.stack(one.columns, axis=1), tuple(one.sizes))
