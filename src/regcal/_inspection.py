"""What objects tell about themselves when asked: a fingerprint, a text, a card in a notebook.

The answers are made by `regcal.persistence` and `regcal.notebook`, which know all classes and are
imported when somebody asks, so that the classes themselves know nothing of files and HTML.
"""

from typing import Any

from sklearn.utils.validation import check_is_fitted


def check_has_learnt(model: Any, attribute: str | None = None) -> None:
    """Refuse an estimator that has seen no rows, and name the method that shows it some."""
    if attribute is not None and hasattr(model, attribute):
        return  # at once: scikit-learn takes as long to say so as some models take for a row
    msg = None
    if hasattr(model, "update"):
        msg = "This %(name)s has seen no rows yet. Call update with some first."
    check_is_fitted(model, attribute, msg=msg)


class Auditable:
    """Fitted objects that can be identified and described."""

    def fingerprint(self) -> str:
        """Return a digest of the class, the parameters and all that was learnt.

        Equal objects have equal fingerprints in every process, before and after
        `regcal.save` and `regcal.load`. Any difference in a parameter or a learnt number
        changes it.

        Returns
        -------
        str
            64 hexadecimal digits.

        Examples
        --------
        >>> from regcal import Normal, ScaleCalibrator
        >>> dist = Normal([0.0, 0.0], [1.0, 1.0])
        >>> one, same = ScaleCalibrator().fit(dist, [1, 2]), ScaleCalibrator().fit(dist, [2, 1])
        >>> one.fingerprint() == same.fingerprint()
        True
        >>> one.fingerprint() == ScaleCalibrator().fit(dist, [1, 3]).fingerprint()
        False
        """
        from regcal.persistence.fingerprint import fingerprint

        check_has_learnt(self)
        return fingerprint(self)

    def summary(self) -> str:
        """Return a text for people: method, parameters and what was learnt.

        Returns
        -------
        str
            Several lines.

        Examples
        --------
        >>> from regcal import Normal, ScaleCalibrator
        >>> print(ScaleCalibrator().fit(Normal([0.0, 0.0], [1.0, 1.0]), [1, 2]).summary())
        ScaleCalibrator
          prior_rows: 1
          step: None
          support: 'auto'
          n_rows_seen_: 2
          map_: ScaleMap
            factor: 1.41421
          factor_: 1.41421
          fingerprint: ...
        """
        from regcal.persistence.description import describe

        check_has_learnt(self)
        return describe(self)


def notebook_card(value: Any) -> str:
    """Return what a notebook shows of an object, as HTML."""
    from regcal.notebook import html_of

    return html_of(value)


class FittedCard:
    """Adds a card to scikit-learn's diagram once an estimator is fitted.

    To be inherited from before `BaseEstimator`.
    """

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + notebook_card(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += notebook_card(self)
        return bundle
