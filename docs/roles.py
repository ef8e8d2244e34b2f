"""Turn roles such as :func:`path` in docstrings into links of the reference."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr|exc):`(~?)([\w.]+)`")


class Roles(Extension):
    """Turn roles into links if the reference contains the object, and into plain code otherwise."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(lambda found: _link(obj, *found.groups()), obj.docstring.value)


def _link(owner: Object, short: str, name: str) -> str:
    shown = name.rpartition(".")[2] if short else name
    path = name if name.startswith("escalade.") else f"{_scope(owner, name)}.{name}"
    return f'<autoref identifier="{path}" optional><code>{shown}</code></autoref>'


def _scope(owner: Object, name: str) -> str:
    """Return the path of the scope that defines a bare name, as seen from ``owner``."""
    scope: Any = owner
    while scope is not None:
        if name.partition(".")[0] in scope.members:
            member = scope.members[name.partition(".")[0]]
            return str((member.target_path if member.is_alias else member.path).rpartition(".")[0])
        scope = scope.parent
    return str(owner.module.path)
