"""Tables of every format, long ones, and those that cannot be used."""

import gzip
import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from shell import SMALL

from regcal.cli._errors import InputError
from regcal.cli._reading import Layout, as_censored, open_table

ON_SMALL = "--target y --mean mu --std sigma --calibrator scale"


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet"])
def test_every_format_can_be_read_and_written(run, ending):
    """The same rows come out, whatever they are kept in."""
    run.good(f"predict scale.regcal new.csv --output first.{ending}")
    run.good(f"predict scale.regcal first.{ending} --levels 0.5 --output again.parquet")

    again, new = run.table("again.parquet"), run.table("new.csv")
    assert again["mean"].dtype == float
    assert_allclose(again["calibrated_q50"], again["q50"])
    pd.testing.assert_frame_equal(again[list(new)], new, check_dtype=False)


def test_separators_are_found_and_kept(run):
    """A file as spreadsheets write it in much of Europe comes back in the same way."""
    text = SMALL.replace(",", ";").replace(".", ",")
    run.write("t.csv", "\ufeff" + text)

    out = run.good(f"calibrate t.csv {ON_SMALL} --apply t.csv --levels 0.5").out.splitlines()
    tabs = run.good(
        f"calibrate - {ON_SMALL} --apply t.csv --levels 0.5 --keep id",
        given=SMALL.replace(",", "\t").encode(),
    )

    assert out[0] == "id;mu;sigma;y;q50"
    assert out[2] == "b;2,0;0,5;2,9;2"
    assert tabs.out.splitlines()[:2] == ["id;q50", "a;1"]


def test_cells_that_are_passed_on_stay_as_they_are(run):
    """Leading zeros, quoted separators, line breaks, blanks and repeated names survive."""
    run.write(
        "t.csv",
        'code,note,note,mean,std\n007,"a, b",x,1.50, 2\n008,"say ""hi""\nthere",,2.00,1e0\n',
    )

    out = run.good("predict scale.regcal t.csv --levels 0.5").out

    table = pd.read_csv(pd.io.common.StringIO(out), dtype=str, keep_default_na=False)
    assert list(table) == ["code", "note", "note.1", "mean", "std", "q50"]
    assert table.iloc[0, :5].tolist() == ["007", "a, b", "x", "1.50", " 2"]
    assert table.iloc[1, :5].tolist() == ["008", 'say "hi"\nthere', "", "2.00", "1e0"]
    kept = '007,"a, b",x,1.50, 2,*\n008,"say ""hi""\nthere",,2.00,1e0,*\n'
    assert re.sub(r",[\d.]+\n", ",*\n", out).partition("\n")[2] == kept
    assert_allclose(table["q50"].astype(float), [1.5, 2.0])


def test_long_tables_are_answered_as_short_ones(run):
    """Rows of later batches get the same answers, and errors name their rows."""
    header, rows = (run.folder / "new.csv").read_bytes().split(b"\n", 1)
    many = header + b"\n" + rows * 500
    assert len(many) > 2**22  # more than one batch
    (run.folder / "many.csv").write_bytes(many)

    run.good("predict scale.regcal new.csv --output one.csv")
    run.good("predict scale.regcal many.csv --output out.parquet")
    (run.folder / "many.csv").write_bytes(many + b"last,1,-1,1\n")
    last = 500 * rows.count(b"\n") + 1
    run.refused("predict scale.regcal many.csv -o bad.csv", f"'std' is -1 in row {last},")

    one, out = run.table("one.csv"), run.table("out.parquet")
    assert_allclose(out["q95"], np.tile(one["q95"], 500))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("t.csv is empty",)),
        ("id,mu,sigma,y\n", ("column names but no rows",)),
        ("id,mu,sigma,y", ("column names but no rows",)),
        ("\n\n\n", ("first line is blank",)),
        ('id,mu,sigma,"y\na,1,1,1\n', ("among the column names is never closed", "'id,mu,")),
        ('id,mu,"sigma,y\na,1,1,1\n', ("among the column names is never closed",)),
        (SMALL + 'e,1,1,"1\n' + "f,1,1,1\n" * 1_100_000, ("row 5 does not end within 4194304",)),
        (SMALL + 'e,1,1,"1\n' + "f,1,1,1\n" * 99, ("row 5 holds '1\\nf,1,1,1\\n...",)),
        ("id,mu,sigm,y\na,1,1,1\n", ("no column 'sigma'", "Did you mean 'sigm'?")),
        ("id,mu,spread,y\na,1,1,1\n", ("no column 'sigma'", "'spread'")),
        ("id,mu,sigma,y,mu\na,1,1,1,2\n", ("2 columns named 'mu'", "Rename")),
        (SMALL + "e,,1,1\n", ("column 'mu' is missing in row 5", "--skip-missing")),
        (SMALL + "e,NA,1,1\n", ("column 'mu' is missing in row 5",)),
        (SMALL + "e,1,1,inf\n", ("column 'y' is inf", "row 5")),
        (SMALL + "e,one,1,1\n", ("column 'mu' must hold numbers", "row 5 holds 'one'")),
        (SMALL + "e,1,-2,1\n", ("column 'sigma' is -2 in row 5", "must be positive")),
        (SMALL + "e,1,0,1\n", ("column 'sigma' is 0 in row 5", "must be positive")),
        (SMALL + "e,1,1\n", ("row 5 has 3 values", "4 columns")),
        (SMALL + 'e,"1,5",1,1\n', ("row 5 holds '1,5'",)),
    ],
)
def test_tables_that_cannot_be_used_are_refused(run, text, parts):
    """The message names file, column, row and value, and the way out."""
    run.write("t.csv", text)

    run.refused(f"calibrate t.csv {ON_SMALL} --save m.regcal", "t.csv", *parts)


def rows_of(path):
    return [batch.column("mu").to_pylist() for batch in open_table(str(path)).batches()]


def test_threads_that_read_files_need_no_python(tmp_path, monkeypatch):
    """One that waits for the interpreter while that ends would keep the process for ever."""
    monkeypatch.setattr("pyarrow.PythonFile", lambda *_, **__: pytest.fail("read by Python"))
    (tmp_path / "t.csv").write_text(SMALL)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(SMALL.encode()))

    assert rows_of(tmp_path / "t.csv") == rows_of(tmp_path / "t.csv.gz")


def test_other_files_are_refused(run):
    """What is no table is told apart from a table."""
    (run.folder / "latin.csv").write_bytes("id,mu,sigma,y\nå,1,1,1\n".encode("latin-1"))
    (run.folder / "sheet.xlsx").write_bytes(b"PK\x03\x04 and so on")
    (run.folder / "cut.parquet").write_bytes(b"PAR1 and nothing else")

    run.refused(f"calibrate latin.csv {ON_SMALL}", "latin.csv is not UTF-8")
    run.refused(f"calibrate sheet.xlsx {ON_SMALL}", "Save the table as CSV")
    run.refused(f"calibrate cut.parquet {ON_SMALL}", "damaged Parquet file")
    run.refused(f"calibrate held_uot.csv {ON_SMALL}", "Did you mean 'held_out.csv'?")
    run.refused(f"calibrate nofile {ON_SMALL}", "no file 'nofile' in this folder. There are: '")
    run.refused(f"calibrate no/where.csv {ON_SMALL}", "no folder 'no' for 'no/where.csv'")
    run.refused(f"calibrate . {ON_SMALL}", "is a folder")
    run.refused(f"calibrate {os.devnull} {ON_SMALL}", "is a pipe or a device", "pass -")


def test_rows_with_missing_values_can_be_left_out(run):
    """They are not learnt from, and their answers are empty."""
    run.write("t.csv", SMALL + "e,,1,1\nf,1,1,\n")

    answer = run.good(f"calibrate t.csv {ON_SMALL} --apply t.csv --levels 0.5 --skip-missing")
    whole = run.good(f"calibrate - {ON_SMALL} --apply t.csv --levels 0.5 --skip-missing",
                     given=SMALL.encode())  # fmt: skip

    assert "2 row(s) with missing values were not used" in answer.err
    assert answer.out.splitlines()[5] == "e,,1,1,"
    assert answer.out == whole.out


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, False, None]),
        pa.array([1, 0, None]),
        pa.array([1.0, 0.0, np.nan]),
        pa.array(["TRUE", " false", "NA"]),
        pa.array(["true", "0", None]).dictionary_encode(),
        pa.array(["1", "False", ""], pa.large_string()),
    ],
    ids=lambda column: str(column.type),
)
def test_truth_values_of_every_type_are_read(column):
    """True and 1 are 1, False and 0 are 0, and what is missing is NaN."""
    found = as_censored(column, Layout("t.csv", ("alive",)), "alive")

    assert_array_equal(found, [1.0, 0.0, np.nan])


@pytest.mark.parametrize("column", [["1", "yes"], [1, 2], [0.0, 0.5]])
def test_other_values_are_no_truth_values(column):
    """The message names the option, the row and the value."""
    with pytest.raises(InputError, match=rf"--censored.*row 8 holds '?{column[1]}"):
        as_censored(pa.array(column), Layout("t.csv", ("alive",)), "alive", first_row=7)
