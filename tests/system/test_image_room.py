# SPDX-License-Identifier: Apache-2.0
"""Whose unused images give way when the store is full: what is above a user's share first."""

import os
import shutil

import pytest

from images import Layout, Store, archive, file, small_disk

if not shutil.which("skopeo"):
    pytest.skip("skopeo is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("disks need root", allow_module_level=True)

SIZE = 1 << 20  # of an image, which cannot be compressed
FITS = 8  # so many, and what is thought that the next one takes while it comes


class Disk:
    """A store on a disk of a few images, and a layout of images for it."""

    def __init__(self, path):
        self.layout, self.store = Layout(path / "layout"), Store(path / "store")
        self.made = set()

    def run(self, user, *tags):
        """What is said of them, asked for at once; images that have come are held until the end."""
        for tag in set(tags) - self.made:
            self.layout.image(tag, [(archive([file("x", os.urandom(SIZE))]), "")])
        self.made |= set(tags)
        self.store.env["DRIVER_USER"] = user
        return self.store.run("get", *map(self.layout.reference, tags))

    def get(self, user, *tags):
        """One after the other."""
        for tag in tags:
            assert self.run(user, tag)[-1].startswith("ready ")

    def tags(self):
        return {name.rpartition(":")[2] for names in self.store.images().values() for name in names}


def some(letter, count):
    return [f"{letter}{i}" for i in range(count)]


@pytest.fixture
def disk(tmp_path):
    made = Disk(tmp_path)
    with small_disk(made.store.state, f"{FITS + 4}m"):
        yield made


def test_a_user_alone_has_the_whole_store(disk):
    disk.get("a", *some("a", FITS))
    assert disk.tags() == set(some("a", FITS))
    disk.get("a", "more")
    assert disk.tags() == {"more", *some("a", FITS)[1:]}


def test_what_is_above_a_share_goes_first(disk):
    disk.get("b", "b0")
    disk.get("a", *some("a", FITS - 1))
    disk.get("b", "b1")
    assert disk.tags() == {"b0", "b1", *some("a", FITS - 1)[1:]}


def test_who_has_more_than_a_share_takes_from_nobody_else(disk):
    disk.get("b", "b0", "b1")
    disk.get("a", *some("a", 2 * FITS))
    assert {"b0", "b1"} <= disk.tags()
    said = [line for line in disk.run("a", *some("c", 2 * FITS)) if line.startswith("failed ")]
    assert said and all("image-no-space" in line for line in said)
    assert any("user-share" in line for line in said)
    assert {"b0", "b1"} <= disk.tags()


def test_who_used_it_last_is_charged(disk):
    disk.get("", "none")
    disk.get("b", *some("b", 4))
    disk.get("a", *some("a", 3), *some("b", 4))
    disk.get("c", "c0")
    assert disk.tags() == {"none", "c0", "a1", "a2", *some("b", 4)}


def test_nobodys_images_give_way_to_all(disk):
    disk.get("", *some("n", FITS))
    disk.get("b", "b0", "b1")
    assert disk.tags() == {"b0", "b1", *some("n", FITS)[2:]}
