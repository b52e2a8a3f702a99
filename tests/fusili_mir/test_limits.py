from __future__ import annotations

import pytest

from fusili_mir.errors import InputError
from fusili_mir.limits import LIMITS, LIMITS_VARIABLE, check_limit, limit


def test_every_limit_says_what_it_counts_and_why() -> None:
    for name, each in LIMITS.items():
        assert each.value > 0, name
        assert each.unit, name
        assert each.reason, name


def test_what_is_at_the_limit_passes_and_what_is_above_is_refused_in_one_line() -> None:
    check_limit("pages", 1000, "a.pdf")
    with pytest.raises(
        InputError, match=r"^a\.pdf: 1001 pages .* at most 1000; .*FUSILI_LIMITS=pages=1001"
    ) as refused:
        check_limit("pages", 1001, "a.pdf")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("found", [float("nan"), float("inf"), 1e300])
def test_what_is_no_number_or_beyond_counting_is_refused(found: float) -> None:
    with pytest.raises(InputError, match=r"FUSILI_LIMITS=pages=\.\.\. if"):
        check_limit("pages", found, "a.pdf")


def test_the_environment_raises_and_lowers_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMITS_VARIABLE, "pages=5e3, pixels=10")
    assert limit("pages") == 5000
    assert limit("pixels") == 10
    assert limit("notes") == LIMITS["notes"].value


@pytest.mark.parametrize("text", ["pges=5", "pages", "pages=many", "pages=-1", "pages=nan"])
def test_a_slip_in_the_environment_is_one_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMITS_VARIABLE, text)
    with pytest.raises(InputError, match=r"^FUSILI_LIMITS: ") as refused:
        limit("pages")
    assert "\n" not in str(refused.value)
