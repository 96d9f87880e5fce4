"""What caches leave behind: nothing."""

from functools import cached_property
from typing import Any


class WithoutCaches:
    """Leaves out of a copy or a file what a `cached_property` computes again when asked."""

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }
