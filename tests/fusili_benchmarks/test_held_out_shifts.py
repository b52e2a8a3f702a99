from dataclasses import fields

from fusili_benchmarks.held_out_shifts import BASE, SHIFTS


def test_every_shift_changes_one_thing_about_the_base() -> None:
    assert SHIFTS[0] is BASE
    for shift in SHIFTS[1:]:
        changed = [
            item.name
            for kind in ("page", "sound")
            for item in fields(getattr(shift, kind))
            if getattr(getattr(shift, kind), item.name) != getattr(getattr(BASE, kind), item.name)
        ]
        assert len(changed) == 1, shift.name


def test_no_two_shifts_are_alike() -> None:
    assert len({shift.name for shift in SHIFTS}) == len({(s.page, s.sound) for s in SHIFTS}) == len(SHIFTS)


def test_with_the_score_only_sound_is_shifted() -> None:
    assert all(shift.page == BASE.page for shift in SHIFTS if shift.with_score)
