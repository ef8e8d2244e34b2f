"""Errors about modules named by a user that cannot be imported."""

import pytest

from escalade import InputError
from escalade.support.imports import import_named

HINT = "run this in the folder that holds it, or set PYTHONPATH to that folder"


def test_a_module_in_a_different_folder_is_reported_with_a_hint(tmp_path, monkeypatch):
    (tmp_path / "escalade_arm.py").write_text("import escalade_gripper\n")
    with pytest.raises(InputError, match=f"module escalade_arm cannot be imported .*; {HINT}"):
        import_named("escalade_arm", "`wrappers` escalade_arm:Grip")
    with pytest.raises(InputError, match=HINT):
        import_named("escalade_arm.left", "`wrappers` escalade_arm.left:Grip")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="escalade_gripper") as problem:
        import_named("escalade_arm", "`wrappers` escalade_arm:Grip")
    assert "PYTHONPATH" not in str(problem.value)  # it exists, but its own import fails


def test_no_folder_hint_if_the_package_is_in_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "escalade_robots").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"\(No module named 'escalade_robots.arm'\)$"):
        import_named("escalade_robots.arm", "environment escalade_robots.arm:Arm")


def test_a_module_that_calls_exit_does_not_end_the_process(tmp_path, monkeypatch):
    (tmp_path / "escalade_script.py").write_text("raise SystemExit('usage: escalade_script ARM')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"cannot be imported \(SystemExit: usage: escalade_script ARM\)"):
        import_named("escalade_script", "environment escalade_script:Arm")


def test_an_error_in_a_module_names_its_file_and_line(tmp_path, monkeypatch):
    (tmp_path / "escalade_slip.py").write_text("x = 1\n\ny = n.zeros(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InputError, match=r"\(NameError: name 'n' is not defined.*, line 3 of escalade_slip\.py\)"
    ):
        import_named("escalade_slip", "`strategy` escalade_slip:Mine")
