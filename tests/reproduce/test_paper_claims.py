"""Claims that follow from rows."""

from studies import as_the_paper_says, made_up

from regcal.reproduce import Scores, claims
from regcal.reproduce.means import Mean
from regcal.reproduce.paper_claims import Count


def test_counts_tell_clear_from_unclear():
    """Two standard errors make a difference clear."""
    count = Count.of([Mean(1.0, 0.4), Mean(1.0, 0.6), Mean(-1.0, 0.1), Mean(-1.0, 9.0)])

    assert count == Count(larger=2, clearly_larger=1, clearly_smaller=1, total=4)
    assert not count.most


def test_claims_hold_where_they_should():
    """On scores made to follow the paper, all claims hold; upside down, none does."""
    right = claims(Scores(made_up(as_the_paper_says)))
    wrong = claims(Scores(made_up(as_the_paper_says, sign=-1.0)))

    assert len(right) == len(wrong) == 9
    assert {claim.verdict for claim in right} == {"held"}
    assert {claim.verdict for claim in wrong} == {"not held"}
    assert right[0].measured.startswith("the best of the three is better in 12 of 12")


def test_a_statement_without_mostly_can_hold_in_part():
    """More than half is not all: e-beta better everywhere, e-logistic at 16 only."""

    def score(method: str, k: int) -> float:
        return -0.5 if (method, k) == ("e-logistic-uniform", 32) else as_the_paper_says(method, k)

    claim = claims(Scores(made_up(score)))[2]

    assert claim.verdict == "partly held"
    assert claim.measured.startswith("e-logistic better in 3 of 6 ")
    assert "; e-beta better in 6 of 6 " in claim.measured


def test_claims_without_their_numbers_are_left_out():
    """A quick study does not judge what it has not measured."""
    rows = {
        cell: row
        for cell, row in made_up(as_the_paper_says).items()
        if cell.thresholds in (0, 8, 32)
    }

    assert len(claims(Scores(rows))) == 3
