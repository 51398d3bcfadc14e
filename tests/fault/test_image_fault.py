# SPDX-License-Identifier: Apache-2.0
"""Every fault point of the image store kills the process that passes it; then
the same is asked of a new one. It is done, whole, and nothing half is left."""

import os
import shutil
import subprocess

import pytest

from images import Layout, Store, archive, file, folder, mounted, small_disk
from world import ROOT

POINTS = [point for point in
          subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                         check=True).stdout.split()
          if point.startswith("agent.image.") and point != "agent.image.ready"]
REMOVING = ("agent.image.gone", "agent.image.layers-gone", "agent.image.tree-removed")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="owners and devices need root"),
    pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not installed"),
]


@pytest.fixture
def scene(tmp_path):
    layout, store = Layout(tmp_path / "layout"), Store(tmp_path / "store")
    layout.image("t", [archive([folder("etc", mode=0o700), file("etc/a", b"a")]),
                       archive([file("etc/b", b"b"), file("c", b"c")])])
    store.env.update(ALIQUOT_FAULT_ONCE=str(tmp_path / "died"),
                     ALIQUOT_FAULT_LOG=str(tmp_path / "passed"))
    return layout.reference("t"), store, tmp_path / "died"


def check_image(layers, path):
    with mounted(layers, path) as root:
        assert sorted(os.listdir(root)) == ["c", "etc"]
        assert sorted(os.listdir(root / "etc")) == ["a", "b"]
        assert os.stat(root / "etc").st_mode & 0o777 == 0o700


def check_records(store):
    """Whatever has a name is whole."""
    for layer in store.entries("layers"):
        assert layer.startswith(".") or {"fs", "implied", "layer.json"} == set(
            os.listdir(store.state / "images/layers" / layer))
    for image in store.entries("images"):
        assert image.startswith(".") or {"manifest.json", "config.json", "used"} <= set(
            os.listdir(store.state / "images/images" / image))


@pytest.mark.gate
@pytest.mark.parametrize("point", [p for p in POINTS if p not in REMOVING])
def test_pull_is_gone_on_with(scene, point, tmp_path):
    name, store, died = scene
    store.env["ALIQUOT_FAULT"] = point
    store.run("get", name)
    assert died.exists(), "no process has passed it"
    check_records(store)
    check_image(store.get(name), tmp_path / "mount")
    assert list(store.images().values()) == [[name]]
    store.check_clean()
    assert not store.entries("pulls") and len(store.entries("layers")) == 2


@pytest.mark.parametrize("count", range(2, 5))
def test_killed_in_the_middle_of_a_layer(scene, count, tmp_path):
    name, store, died = scene
    store.env["ALIQUOT_FAULT"] = f"agent.image.entry:{count}"
    store.settings["unpack-jobs"] = 1
    store.run("get", name)
    check_records(store)
    check_image(store.get(name), tmp_path / "mount")
    store.check_clean()


@pytest.mark.parametrize("point", REMOVING)
def test_removal_is_gone_on_with(scene, point, tmp_path):
    name, store, died = scene
    store.get(name)
    store.env["ALIQUOT_FAULT"] = point
    store.run("rm", name)
    assert died.exists(), "no process has passed it"
    check_records(store)
    assert store.images() == {}
    store.run("gc-all")
    store.check_clean()
    assert not store.entries("layers") and not store.entries("images")
    check_image(store.get(name), tmp_path / "mount")


@pytest.mark.parametrize("point", REMOVING)
def test_room_is_made_again(tmp_path, point):
    """The disk is full of what nobody uses, and the process dies while that gives way."""
    layout, store = Layout(tmp_path / "layout"), Store(tmp_path / "store")
    names = []
    for i in range(6):
        layout.image(f"t{i}", [(archive([file("x", os.urandom(1 << 20))]), "")])
        names.append(layout.reference(f"t{i}"))
    store.env.update(ALIQUOT_FAULT_ONCE=str(tmp_path / "died"))
    with small_disk(store.state, "9m"):
        for name in names[:-1]:
            store.get(name)
        store.env["ALIQUOT_FAULT"] = point
        store.run("get", names[-1])
        assert (tmp_path / "died").exists(), "no process has passed it"
        check_records(store)
        store.get(names[-1])
        assert [names[-1]] in store.images().values() and [names[0]] not in store.images().values()
        store.check_clean()
