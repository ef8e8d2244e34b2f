"""Options from text and TOML."""

import pytest

from escalade.config.conversion import parse_toml
from escalade.errors import InputError


def test_brackets_that_are_open_are_counted_before_a_file_is_parsed(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(f"env_kwargs = {'[' * 3000}{']' * 3000}\n")
    with pytest.raises(InputError) as raised:
        parse_toml(path)
    assert str(raised.value) == f"config file {path} is nested too deeply"
    path.write_text(f'wrappers = ["a", "b"]\n# {"[]" * 3000}\n')
    assert parse_toml(path) == {"wrappers": ["a", "b"]}
