# SPDX-License-Identifier: Apache-2.0
"""A clean root to build in, with a copy of the source; what tools/make-* share."""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import commands
from bare_root import RENEW_SEC, Root, cache_dir
from commands import run

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(*words):
    return run(["git", "-C", ROOT, *words], f"git {words[0]}")


# What is built


def copy_source(commit, target):
    """The files of a commit, or those of the working tree that git does not ignore."""
    target.mkdir(parents=True)
    if commit:
        with subprocess.Popen(["git", "-C", ROOT, "archive", commit],
                              stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", target], stdin=archive.stdout, check=True)
        return
    names = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_symlink() or (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name, follow_symlinks=False)


def project_version(source):
    return re.search(r"version: '([^']+)'", (source / "meson.build").read_text())[1]


def group_words(source, group):
    """The words of one group of packages.txt as a list of dependencies."""
    lines = (source / "tools" / "packages.txt").read_text().splitlines()
    words = next(line.split()[1:] for line in lines if line.split()[:1] == [group])
    return [word.replace("|", " | ") for word in words]


# Where it is built


@contextlib.contextmanager
def work_folder():
    """A folder that goes with this process; those of killed ones are removed first."""
    base = cache_dir() / "building"
    base.mkdir(exist_ok=True)
    for folder in base.iterdir():
        if not pathlib.Path("/proc", folder.name.split("-")[0]).exists():
            shutil.rmtree(folder, ignore_errors=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base))
    try:
        yield folder
    finally:
        commands.stop_all()
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)


def build_root(suite, names, folder):
    """A root with these packages; made once and kept as long as bare ones are."""
    names = sorted(names)
    key = hashlib.sha256(" ".join(names).encode()).hexdigest()[:12]
    tar = cache_dir() / "roots" / f"{suite}-build-{key}.tar"
    tar.parent.mkdir(exist_ok=True)
    with open(tar.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if tar.exists() and time.time() - tar.stat().st_mtime < RENEW_SEC:
            folder.mkdir()
            run(["tar", "-C", folder, "--numeric-owner", "-xpf", tar], "unpacking the build root")
            return Root(folder)
        root = Root.make(suite, folder)
        script = "apt-get -q update; apt-get -qy install --no-install-recommends " + " ".join(
            f"$(for n in {name.replace('|', ' ')}; do apt-cache show $n >/dev/null 2>&1 &&"
            f" echo $n && break; done)" if "|" in name else name for name in names)
        run(root.words(["sh", "-ec", script], env={"DEBIAN_FRONTEND": "noninteractive"}),
            "installing the build dependencies", "is there a network, and room on the disk?")
        run(["tar", "-C", folder, "--numeric-owner", "-cpf", f"{tar}.new", "."],
            "keeping the build root")
        os.rename(f"{tar}.new", tar)
        return root


class Build:
    """A copy of the source in a clean root.

    The folder 'source' is 'inside' for commands in the root, and never the same: it must not
    matter. 'epoch' is the time that every file is to have, the commit's.
    """

    def __init__(self, root, source, inside, epoch):
        self.root, self.source, self.inside, self.epoch = root, source, inside, epoch

    def run(self, script, what):
        """Run lines of a shell in the source's folder, without a network."""
        run(self.root.words(["sh", "-ec", f"cd '{self.inside}'\n{script}"], offline=True,
                            env={"LC_ALL": "C.UTF-8"}), what)


def build_pages(source):
    """Those of console/, by this machine's npm: a root has no way to its registry."""
    npm = shutil.which("npm")
    for page in (source / "console").glob("*/missing.html") if npm else ():
        run([source / "tools" / "build-console", npm, page.parent.name,
             page.with_name("built.html"), os.devnull], "npm")
    shutil.rmtree(source / "console" / "node_modules", ignore_errors=True)


@contextlib.contextmanager
def clean_build(commit, suite, groups, more=()):
    """A Build of a commit (None: the working tree) in a root with groups of packages.txt and
    the packages 'more'."""
    hash_ = git("rev-parse", "--verify", f"{commit or 'HEAD'}^{{commit}}").strip()
    epoch = int(git("show", "-s", "--format=%ct", hash_))
    with work_folder() as work:
        copy_source(commit and hash_, work / "source")
        build_pages(work / "source")
        words = [word for group in groups for word in group_words(work / "source", group)]
        root = build_root(suite, [*words, *more], work / "root")
        source = root.folder / work.name / "source"
        source.parent.mkdir()
        (work / "source").rename(source)
        yield Build(root, source, pathlib.Path("/", work.name, "source"), epoch)
