"""Cells by name, and seeds that follow names."""

import pytest
from numpy.testing import assert_allclose

from regcal.datasets import make_toy_mixture
from regcal.reproduce import FULL, QUICK, Cell, Unit, seed_of
from regcal.reproduce.scores import METHODS, OuterFold


def test_a_name_leads_back_to_its_cell():
    """Every cell of the study can be found by its name."""
    for cell in FULL.cells()[::97]:
        assert Cell.from_name(cell.name) == cell


@pytest.mark.parametrize("name", ["", "boston/GPR/3/2/gpc", "boston/GPR/x/2/gpc/8"])
def test_a_wrong_name_is_refused(name):
    """The message shows a right one."""
    with pytest.raises(ValueError, match="boston/GPR/3/2/gpc/32"):
        Cell.from_name(name)


def test_the_full_study_has_the_papers_size():
    """5 data sets, 3 base models, 5 numbers of target values, 10 times 5 folds."""
    cells = FULL.cells()
    gpc = [cell for cell in cells if cell.method == "gpc-zero"]

    assert len(gpc) == 5 * 3 * 5 * 10 * 5
    assert len(set(cells)) == len(cells)
    assert {cell.method for cell in cells} == set(METHODS)
    assert {cell.unit.repetition for cell in QUICK.cells()} == {0}


def test_the_first_cells_are_a_whole_repetition():
    """A study that is stopped early is a smaller study."""
    cells = FULL.cells()
    first = [cell for cell in cells if cell.unit.repetition == 0]

    assert cells[: len(first)] == first


def test_seeds_follow_names():
    """The first four bytes of SHA-256, and folds that all base models share."""
    toy = make_toy_mixture(60, random_state=0)
    folds = [OuterFold(toy, Unit("toy", base, 0, 1)) for base in ("OLS", "BRR")]
    other = OuterFold(toy, Unit("toy", "OLS", 1, 1))

    assert seed_of("") == 0xE3B0C442
    assert_allclose(folds[0].y_test, folds[1].y_test)
    assert set(folds[0].y_test) != set(other.y_test)
