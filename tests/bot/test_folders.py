from pathlib import Path

import pytest

from bot.folders import UnusableFolder, open_data_dir, usable


def test_a_data_directory_is_made_with_its_parents_for_its_owner_alone(tmp_path: Path):
    folder = tmp_path / "share" / "lodger"
    open_data_dir(folder)
    open_data_dir(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_what_is_in_the_way_and_the_setting_are_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(UnusableFolder) as below:
        open_data_dir(tmp_path / "file" / "data")
    assert str(below.value) == (
        f"cannot use '{tmp_path}/file/data': Not a directory. Set [host] data_dir to a folder that this user may write."
    )
    with pytest.raises(UnusableFolder, match="it is a file"):
        open_data_dir(tmp_path / "file")


def test_other_errors_pass(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), usable("[host] data_dir", tmp_path):
        _ = 1 / 0
