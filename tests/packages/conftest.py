# SPDX-License-Identifier: Apache-2.0
"""The packages of this tree, and those of the commit that first could make any."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "packages")]
from bare_root import cache_dir, end_with_parent  # noqa: E402
from machine import Machine  # noqa: E402

MAKE = ROOT / "tools" / "make-packages"
LOWER = "0.1.0~before"  # than this tree's version


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True,
                          text=True).stdout.strip()


def make(out, *words):
    """tools/make-packages, which ends with this process."""
    return subprocess.run([MAKE, "--out", out, *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, preexec_fn=end_with_parent)


def make_once(commit, *words):
    """The packages of a commit, from the cache if they have been made before."""
    kept = cache_dir() / "debs" / "-".join([commit[:16], *words])
    if not kept.exists():
        fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
        done = make(fresh, "--commit", commit, *words)
        assert done.returncode == 0, done.stdout
        fresh.rename(kept)
        for old in sorted(kept.parent.iterdir(), key=os.path.getmtime)[:-6]:
            shutil.rmtree(old, ignore_errors=True)
    return kept


@pytest.fixture(scope="session")
def debs(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("packages are made in bare roots, which need root")
    subprocess.run([ROOT / "tools" / "install-packages", "demo"], check=True)
    if not git("status", "--porcelain"):
        return make_once(git("rev-parse", "HEAD"))
    out = tmp_path_factory.mktemp("debs")
    done = make(out)
    assert done.returncode == 0, done.stdout
    return out


@pytest.fixture(scope="session")
def older_debs(debs):
    first = git("log", "--diff-filter=A", "--format=%H", "--", "tools/make-packages")
    return make_once(first.splitlines()[-1], "--version", LOWER)


@pytest.fixture
def machine(tmp_path):
    with Machine(tmp_path / "root") as machine:
        yield machine
