"""The worst segments of an audit: by how much observed shares differ from predicted ones."""

import textwrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal.audit import Audit, AuditedSegment, audit
from regcal.audit.findings import SIGNIFICANT
from regcal.plots._base import BAND, GREY, VERMILLION, Display, legend_above, note_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AuditDisplay(Display):
    """Observed less predicted share of the worst segments, each of the event that says most.

    Differences of calibrated predictions stay inside the grey bars, in all segments at once. Filled
    points are outside.

    Parameters
    ----------
    audit : Audit
    name : str, optional
        Title of the panel.

    Examples
    --------
    >>> import numpy as np
    >>> import regcal
    >>> from regcal.plots import AuditDisplay
    >>> rng = np.random.default_rng(0)
    >>> found = regcal.audit(
    ...     rng.normal(size=200), regcal.Normal(np.zeros(200), 1.0), {"age": rng.uniform(size=200)}
    ... )
    >>> AuditDisplay.from_audit(found).ax_.get_xlabel()
    'Observed − predicted share'
    """

    def __init__(self, audit: Audit, name: str | None = None) -> None:
        self.audit = audit
        self.name = name

    @classmethod
    def from_audit(
        cls,
        audit: Audit,
        *,
        segments: int = 12,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw what `regcal.audit` found.

        Parameters
        ----------
        audit : Audit
        segments : int, default=12
            How many segments are drawn, the worst first.
        name : str, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        AuditDisplay
        """
        return cls(audit, name).plot(ax, segments=segments)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Audit the predictions of a fitted estimator along its own features, and draw them.

        Parameters
        ----------
        estimator : fitted model
            Anything that `regcal.predict_dist` takes.
        X : array-like or frame of shape (n_rows, n_features)
            The covariates, unless `covariates` says otherwise.
        y : array-like of shape (n_rows,), or Outcomes
        **options
            As in `from_predictions`.

        Returns
        -------
        AuditDisplay
        """
        return super().from_estimator(estimator, X, y, **{"covariates": X, **options})

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        dist: Any,
        *,
        covariates: Any = None,
        groups: Any = None,
        segments: int = 12,
        name: str | None = None,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Audit predictions and draw what was found.

        Parameters
        ----------
        y : array-like of shape (n_rows,), or Outcomes
        dist : Distribution or anything `as_distribution` takes
        covariates, groups
            As in `regcal.audit`.
        segments : int, default=12
        name : str, optional
        ax : matplotlib Axes, optional
        **options
            As in `regcal.audit`.

        Returns
        -------
        AuditDisplay
        """
        found = audit(y, dist, covariates, groups, **options)
        return cls.from_audit(found, segments=segments, name=name, ax=ax)

    def plot(self, ax: "Axes | None" = None, *, segments: int = 12) -> Self:
        """Draw on `ax`, or on a new figure, and return this display."""
        shown = self.audit.segments[:segments]
        own_figure = ax is None
        ax = self._start(ax, (6.4, 1.4 + 0.42 * len(shown)))
        places = np.arange(len(shown))
        lower, upper, differences = (
            np.array([getattr(one, name) for one in shown])
            for name in ("lower", "upper", "difference")
        )
        wrong = np.array([one.p_value < SIGNIFICANT for one in shown])
        ax.barh(
            places, upper - lower, 0.6, left=lower, color=BAND, alpha=0.55, label="by chance (95 %)"
        )
        ax.use_sticky_edges = False  # bars end inside the axes
        ax.axvline(0.0, color=GREY, linewidth=1, linestyle=":")
        for rows, fill, label in ((wrong, VERMILLION, "wrong"), (~wrong, "white", "within chance")):
            if rows.any():
                ax.plot(
                    differences[rows],
                    places[rows],
                    linestyle="none",
                    marker="o",
                    markeredgecolor=VERMILLION,
                    markerfacecolor=fill,
                    label=label,
                )
        ax.set_yticks(places, [_label(one) for one in shown], fontsize="small")
        ax.invert_yaxis()
        ax.set(xlabel="Observed − predicted share")
        if own_figure:
            ax.set_title(self.name or "", loc="left")
            figure: Any = self.figure_
            figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize="small")
        else:
            legend_above(ax, self.name, columns=3)
        note_below(ax, self.audit.note)
        return self


def _label(one: AuditedSegment) -> str:
    """Return a segment over its event: beside it, long names would leave no room."""
    return f"{textwrap.fill(one.segment, 24)}\n{one.event()}"
