"""Hooks of MkDocs: pages for files outside of docs/, and tables that fit on a phone."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = ("benchmarks/*.md", "benchmarks/peers/*.md", "examples/*.md")
SOURCES = ("benchmarks/*.py", "benchmarks/peers/*", "examples/*.py", "src/escalade/**/*.py")
LANGUAGES = {".py": "python", ".toml": "toml", ".txt": "text"}
_PATH = re.compile(r"(?<!\[)`((?:benchmarks|examples|src/escalade)/[\w/-]+\.(?:md|py))`(?!\])")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<t([hd])([^>]*)>(.*?)</t[hd]>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_CODE = re.compile(r"<code>([^<]*)</code>")
_PRE = re.compile(r"(<pre.*?</pre>)", re.DOTALL)
_LONGEST = 28  # characters of a name that fits into a cell on a phone


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of measurements and examples, and a page for each source file that a page links."""
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    linked = {target for file in files.documentation_pages() for target in _targets(file)}
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if name in linked and path.suffix in LANGUAGES:
                files.append(File.generated(config, f"{name}.md", content=_source(path, name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files of the repository to their pages. Links to other files become plain text."""
    here = posixpath.dirname(_repository_path(page.file))

    def resolved(found: re.Match[str]) -> str:
        text, target = found.groups()
        path, hash_, anchor = target.partition("#")
        if not path or ":" in path:
            return found[0]
        name = posixpath.normpath(posixpath.join(here, path))
        name = name.removeprefix("docs/")
        name = next((known for known in (name, f"{name}.md") if known in files.src_uris), "")
        if not name:
            return text if path.startswith("..") or not here.startswith("docs") else found[0]
        link = posixpath.relpath(name, posixpath.dirname(page.file.src_uri) or ".")
        return f"[{text}]({link}{hash_}{anchor})"

    return _in_prose(_linked(markdown, here), lambda prose: _LINK.sub(resolved, prose))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep names in code on one line, and write the head of its column into every cell of a table.

    A phone shows the row of a table as a list of its cells.
    """
    parts = _PRE.split(html)
    parts[0::2] = [_CODE.sub(lambda code: f"<code>{_unbroken(code[1])}</code>", part) for part in parts[0::2]]
    return _TABLE.sub(lambda table: _labeled(table[0]), "".join(parts))


def _repository_path(file: File) -> str:
    outside = file.src_uri.startswith(("benchmarks/", "examples/", "src/"))
    return file.src_uri if outside else f"docs/{file.src_uri}"


def _targets(file: File) -> set[str]:
    here = posixpath.dirname(_repository_path(file))
    links = _LINK.findall(_linked(file.content_string, here))
    return {posixpath.normpath(posixpath.join(here, target.partition("#")[0])) for _, target in links}


def _linked(markdown: str, here: str) -> str:
    """Turn the name of a file of the repository, as ``benchmarks/presets.md`` in code, into a link."""
    return _in_prose(markdown, lambda prose: _PATH.sub(lambda found: _link(found, here), prose))


def _link(found: re.Match[str], here: str) -> str:
    if not (ROOT / found[1]).is_file():
        return found[0]
    return f"[{found[0]}]({posixpath.relpath(found[1], here)})"


def _in_prose(markdown: str, change: Any) -> str:
    parts = _FENCED.split(markdown)
    parts[0::2] = map(change, parts[0::2])
    return "".join(parts)


def _source(path: Path, name: str) -> str:
    return f"# {name}\n\n`````{LANGUAGES[path.suffix]}\n{path.read_text()}\n`````\n"


def _labeled(table: str) -> str:
    heads = [_TAG.sub("", text).strip() for kind, _, text in _CELL.findall(table) if kind == "h"]
    if len(heads) < 2:
        return table

    def labeled(row: str) -> str:
        cells = iter(heads)

        def cell(found: re.Match[str]) -> str:
            kind, attributes, text = found.groups()
            if kind == "h":
                return found[0]
            label = next(cells, "").replace('"', "&quot;")
            return f'<td{attributes} data-label="{label}"><span>{text}</span></td>'

        return _CELL.sub(cell, row)

    made = _ROW.sub(lambda row: labeled(row[0]), table)
    return made.replace("<table>", f'<table data-columns="{len(heads)}">', 1)


def _unbroken(code: str) -> str:
    """Let a line break between words and after commas, bars and slashes, but not within a name."""
    return " ".join("<wbr>".join(map(_whole, _parts(word))) for word in code.split(" "))


def _whole(name: str) -> str:
    return f"<span>{name}</span>" if len(name) <= _LONGEST else name


def _parts(word: str) -> list[str]:
    return re.findall(r"(?:[^,|/;&]|&#?\w+;)*[,|/;]*", word)[:-1] or [word]
