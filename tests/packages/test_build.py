# SPDX-License-Identifier: Apache-2.0
"""The packages as files."""

import hashlib
import shutil

import pytest

from conftest import make

NAMES = {"aliquot", "aliquot-agent", "aliquot-gpu", "aliquot-k8s", "aliquot-manager",
         "aliquot-postgres", "aliquot-proxy", "aliquot-storage", "aliquot-web",
         "libaliquot-dev"}


@pytest.fixture(scope="module")
def again(debs, tmp_path_factory):
    """Another build, and its folder."""
    out = tmp_path_factory.mktemp("again")
    yield make(out, "--lint"), out
    shutil.rmtree(out)


def sums(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.glob("*.deb")}


def test_there_are_all_of_them(debs):
    names = {path.name.split("_")[0] for path in debs.glob("*.deb")}
    assert names >= NAMES and "aliquot-dbgsym" in names


def test_lintian_finds_nothing(again):
    assert again[0].returncode == 0, again[0].stdout


def test_built_again_they_are_the_same(debs, again):
    assert sums(again[1]) == sums(debs), again[0].stdout
