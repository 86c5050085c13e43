"""Codes that may stand beside those that were kept: written out by hand."""

from __future__ import annotations

from gibbous.structure.code_lists import code_list


def test_codes_that_are_written_alike_make_a_list_from_half_the_least_to_twice_the_greatest() -> (
    None
):
    found = code_list(["INJ004", "INJ005", "INJ006", "INJ010", "INJ011", "MUS001", "other", "NA"])

    assert found == tuple(f"INJ{number:03}" for number in range(2, 23))


def test_lists_have_as_many_digits_as_the_codes_and_each_code_once() -> None:
    three, two = ["039", "414", "428", "780", "995"], ["11", "12", "13", "14", "90"]

    found = code_list(three + two)

    assert found == (*(f"{n:03}" for n in range(19, 1000)), *(f"{n:02}" for n in range(5, 100)))
    assert len(set(found)) == len(found)
    assert set(three + two) <= set(found)


def test_few_codes_and_texts_without_digits_make_no_list() -> None:
    assert code_list(["A1", "A2", "A3", "A4", "red", "green", "blue", "x7y", ""]) == ()
    assert code_list([]) == ()
