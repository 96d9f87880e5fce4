"""Columns that hold covariates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from regcal.covariates import Covariates
from regcal.tables.reading import check_has_column, read_column


@dataclass(frozen=True)
class CovariateColumns:
    """Reads covariates from columns of a table.

    Parameters
    ----------
    columns : mapping from str to column names of a frame, or column numbers of an array
        Where each covariate stands.
    texts : sequence of str, default=()
        Which of the covariates are categories. An empty text is a missing one.

    Examples
    --------
    >>> from regcal.tables import CovariateColumns
    >>> known = CovariateColumns({"age": "age", "kind": "type"}, texts=("kind",))
    >>> known({"age": [3, 28], "type": ["a", ""], "y": [1, 2]})["kind"].values
    array([ 0, -1])
    """

    columns: Mapping[str, Any]
    texts: Sequence[str] = ()

    @classmethod
    def like(cls, known: Covariates) -> Self:
        """Return columns of the same names and kinds as those of earlier rows."""
        texts = (one.name for one in known.columns if one.kind == "category")
        return cls({name: name for name in known.names}, tuple(texts))

    @property
    def numbers(self) -> tuple[Any, ...]:
        """Columns of numbers."""
        return tuple(place for name, place in self.columns.items() if name not in self.texts)

    @property
    def categories(self) -> tuple[Any, ...]:
        """Columns of categories."""
        return tuple(place for name, place in self.columns.items() if name in self.texts)

    def __call__(self, table: Any) -> Covariates:
        """Return the covariates of all rows of a table."""
        return Covariates.of(
            {
                name: _read_texts(table, place) if name in self.texts else read_column(table, place)
                for name, place in self.columns.items()
            }
        )


def _read_texts(table: Any, name: Any) -> np.ndarray:
    """Return a column of a table as texts, None where one is missing."""
    check_has_column(table, name)
    texts = np.array(table[name], dtype=object)
    texts[texts == ""] = None
    return texts
