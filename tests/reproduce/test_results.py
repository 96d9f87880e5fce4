"""Files of results: rows once, one writer, spoilt lines."""

import gzip
from dataclasses import replace

import pytest
from studies import a_row

from regcal.reproduce import read_results
from regcal.reproduce.results import open_results, write_results


def test_a_row_is_not_written_twice(tmp_path):
    """A cell that is there stays as it is."""
    path, name = tmp_path / "rows.csv", "boston/OLS/0/0/gpc/8"
    with open_results(path) as results:
        results.append([a_row(name)])
        results.append([a_row(name, -2.0)])

    assert [row.log_score for row in read_results(path).values()] == [-1.0]


def test_a_second_writer_is_refused(tmp_path):
    """Two runs cannot mix their rows in one file."""
    pytest.importorskip("fcntl")
    with (
        open_results(tmp_path / "rows.csv"),
        pytest.raises(BlockingIOError, match="Another run"),
        open_results(tmp_path / "rows.csv"),
    ):
        pass


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace("dataset", "data", 1), "does not begin with"),
        (lambda text: text + text.splitlines()[1] + "\n", "Line 3 .* repeats the cell"),
        (lambda text: text + "nonsense\n", "Line 3 .* cannot be read"),
    ],
)
def test_a_spoilt_file_is_refused(tmp_path, spoil, message):
    """The message names the line and the way out."""
    path = tmp_path / "rows.csv"
    with open_results(path) as results:
        results.append([a_row("boston/OLS/0/0/gpc/8")])
    path.write_text(spoil(path.read_text()))

    with pytest.raises(ValueError, match=message):
        read_results(path)


def test_stored_rows_are_the_rows(tmp_path):
    """Compressed and sorted, with everything but surplus digits kept."""
    rows = [
        replace(a_row("boston/OLS/0/1/gpc/8", -1.25), chosen="pit"),
        replace(a_row("boston/OLS/0/0/gpc-zero/8"), raw_log_score=-3.0, raw_n_floored=2),
    ]
    write_results(tmp_path / "rows.csv.gz", rows)
    text = gzip.decompress((tmp_path / "rows.csv.gz").read_bytes()).decode()

    assert read_results(tmp_path / "rows.csv.gz") == {row.cell: row for row in rows}
    assert text.index("OLS,0,0") < text.index("OLS,0,1")
