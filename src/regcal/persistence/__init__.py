"""Files that keep fitted objects, without pickle."""

from regcal.persistence._api import file_info, load, save
from regcal.persistence._archive import FileError

__all__ = ["FileError", "file_info", "load", "save"]
