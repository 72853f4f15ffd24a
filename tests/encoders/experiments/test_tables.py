from pathlib import Path

import pytest

from encoders.experiments.errors import ExperimentError
from encoders.experiments.tables import read_table, require_columns


def test_csv_keeps_commas_quotes_line_breaks_and_accents(tmp_path: Path):
    path = tmp_path / "data.csv"
    path.write_text('text,label\n"å, ""b""\nc",x\n\nd,y\n', encoding="utf-8")
    assert read_table(path) == [{"text": 'å, "b"\nc', "label": "x"}, {"text": "d", "label": "y"}]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path):
    path = tmp_path / "data.csv"
    path.write_text("text,label\na,b\n", encoding="utf-8-sig")
    assert list(read_table(path)[0]) == ["text", "label"]


def test_jsonl_values_become_text_and_null_becomes_nothing(tmp_path: Path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "å", "label": 1.5}\n\n{"text": "b", "label": null, "fine": true}\n', encoding="utf-8")
    assert read_table(path) == [{"text": "å", "label": "1.5"}, {"text": "b", "label": "", "fine": "true"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.txt", b"text\na\n", r"must end in \.csv or \.jsonl, not '\.txt'"),
        ("data.csv", b"", "has no rows"),
        ("data.csv", b"text,label\n", "has no rows"),
        ("data.csv", b"text,text\na,b\n", "more than one column 'text'"),
        ("data.csv", b"text,label\na,b\nc\n", "row 2: 1 cells, but the header has 2"),
        ("data.csv", b"text,label\n\xff\xfe,b\n", "not UTF-8: .* at byte 11"),
        ("data.csv", b"text,label\n" + b"a" * 200_000 + b",b\n", "line 2: field larger than field limit"),
        ("data.jsonl", b'{"text": 1}\n{"text"\n', "line 2: not JSON"),
        ("data.jsonl", b"[1]\n", "line 1: not a JSON object"),
    ],
)
def test_malformed_files_are_refused_by_name(tmp_path: Path, name: str, content: bytes, message: str):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ExperimentError, match=message) as refusal:
        read_table(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_missing_files_and_folders_are_told_apart(tmp_path: Path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ExperimentError, match=r"absent\.csv does not exist"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(ExperimentError, match=r"folder\.csv is not a file"):
        read_table(tmp_path / "folder.csv")


def test_a_missing_column_is_named_with_the_nearest_one():
    rows = [{"text": "a"}, {"text": "b", "labels": "c"}]
    require_columns(rows, ["text", "labels"], source="data.jsonl")
    with pytest.raises(ExperimentError, match=r"has no column 'label': did you mean 'labels'\?.*text, labels"):
        require_columns(rows, ["text", "label"], source="data.jsonl")
