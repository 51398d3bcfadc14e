# SPDX-License-Identifier: Apache-2.0
"""The demo's folders: what it keeps in the cache, and a state for each demo that runs."""

import fcntl
import itertools
import os
import pathlib
import shutil

import commands
from commands import Failed

MARK = "demo.lock"  # held as long as a demo has the folder; nothing without it is ever emptied


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(base) / "aliquot-demo"
    path.mkdir(parents=True, exist_ok=True)
    return path


def try_lock(path):
    """The file 'path', open and locked until it is closed; None if another process has it."""
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file
    except BlockingIOError:
        file.close()
        return None


def locked_cache(on_wait):
    """No other demo makes images meanwhile; on_wait() is called if one does now."""
    return commands.locked(cache_dir(), on_wait)


class State:
    """A folder for one cluster that no other demo has: 'wanted', or one in the cache, which is
    emptied at the end unless something failed."""

    def __init__(self, wanted=None):
        self.is_kept = wanted is not None
        if wanted:
            self.folder = pathlib.Path(wanted).absolute()
            self.lock = self.take_wanted()
        else:
            self.folder, self.lock = next(filter(all, map(self.take, itertools.count(1))))

    @staticmethod
    def take(number):
        folder = cache_dir() / f"cluster-{number}"
        folder.mkdir(exist_ok=True)
        return folder, try_lock(folder / MARK)

    def take_wanted(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(self.folder.iterdir()) and not (self.folder / MARK).exists():
            raise Failed(f"{self.folder} is not empty and no demo made it", "",
                         "name a new folder by --state")
        if not (lock := try_lock(self.folder / MARK)):
            raise Failed(f"another ./demo has {self.folder}", "", "name another folder by --state")
        return lock

    def empty(self):
        for entry in self.folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != MARK:
                entry.unlink()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if not self.is_kept and not (kind and issubclass(kind, Exception)):
            self.empty()
        self.lock.close()
