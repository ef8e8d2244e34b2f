"""Packages are complete: built like a release, from a copy of the sources, without the network."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKED = ("benchmarks", "cluster", "docs", "examples", "src", "tests")
FILES = ("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile", "README.md")
FILES += (
    "CODE_OF_CONDUCT.md",
    "LICENSE-Apache-2.0",
    "SECURITY.md",
    "constraints.txt",
    "mkdocs.yml",
    "pyproject.toml",
)
LEFTOVERS = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")
BUILD = "import setuptools.build_meta as b, sys; to = sys.argv[1]; b.build_sdist(to); b.build_wheel(to)"


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a copy of the sources, and the folder of the packages built from it."""
    pytest.importorskip("setuptools", minversion="77")
    place = tmp_path_factory.mktemp("packaging")
    for name in PACKED:
        shutil.copytree(ROOT / name, place / "source" / name, ignore=LEFTOVERS)
    for name in FILES:
        shutil.copy(ROOT / name, place / "source" / name)
    command = [sys.executable, "-c", BUILD, str(place / "dist")]
    done = subprocess.run(command, cwd=place / "source", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / "source", place / "dist"


@pytest.mark.slow("MANIFEST.in", "src/escalade/config", "src/escalade/zoo")
def test_the_wheel_has_every_file_of_the_package(built):
    source, dist = built
    (wheel,) = dist.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("escalade/")}
    assert packed == {f"escalade/{name}" for name in files(source / "src" / "escalade")}
    assert {"escalade/py.typed", "escalade/config/tuned/CartPole-v1.toml"} <= packed
    assert {"escalade/strategies/les.safetensors", "escalade/zoo/CartPole-v1/policy.safetensors"} <= packed


@pytest.mark.slow("MANIFEST.in", "src/escalade/config", "src/escalade/zoo")
def test_the_source_distribution_has_all_that_make_test_needs(built):
    source, dist = built
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        packed = {member.name.partition("/")[2] for member in tar if member.isfile()}
    wanted = {f"{name}/{file}" for name in PACKED for file in files(source / name)} | set(FILES)
    assert {name for name in wanted ^ packed if ".egg-info/" not in name} == {"PKG-INFO", "setup.cfg"}


@pytest.mark.slow("MANIFEST.in", "src/escalade/config", "src/escalade/zoo")
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_the_packages_install_and_run(built, kind, tmp_path):
    """Install without dependencies, which exist here, and without the network. CI installs them too."""
    (packed,) = built[1].glob(kind)
    how = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--target", str(tmp_path / "here")]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *how, str(packed)]
    done = subprocess.run(pip, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "escalade", "presets"]
    variables = os.environ | {"PYTHONPATH": str(tmp_path / "here")}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "CartPole-v1" in done.stdout


def test_the_citation_has_this_version():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == project["version"]
    license = re.search(r"^license: (.*)$", citation, re.MULTILINE)[1]
    assert project["license"] == f"{license} AND Apache-2.0"  # of one file of weights, which was cited there
