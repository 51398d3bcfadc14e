# SPDX-License-Identifier: Apache-2.0
"""The image for clusters: the same each time, and whole."""

import json
import os
import subprocess
import tarfile

from world import BUILD, ROOT, World


def make(path):
    subprocess.run([ROOT / "tools/make-kube-image", "--build", BUILD, "--out", path], check=True,
                   stdout=subprocess.DEVNULL)
    return path


def blob(archive, described):
    return archive.extractfile("blobs/" + described["digest"].replace(":", "/"))


def unpack(path, to):
    """The image's configuration, and its only layer into a folder."""
    with tarfile.open(path) as archive:
        (entry,) = json.load(archive.extractfile("index.json"))["manifests"]
        manifest = json.load(blob(archive, entry))
        (layer,) = manifest["layers"]
        with tarfile.open(fileobj=blob(archive, layer), mode="r:gz") as packed:
            packed.extractall(to)
        return json.load(blob(archive, manifest["config"]))["config"]


def test_image_is_whole_and_always_the_same():
    with World() as world:
        first = make(world.folder / "first.tar")
        assert first.read_bytes() == make(world.folder / "second.tar").read_bytes()
        root = world.folder / "root"
        config = unpack(first, root)
        enter = ["chroot", root] if os.geteuid() == 0 else ["unshare", "-r", "chroot", root]

        loader = next(path for path in root.glob("lib*/ld-linux*.so.*"))
        program = root / config["Entrypoint"][0].lstrip("/")
        done = subprocess.run([loader, "--inhibit-cache", "--library-path",
                               ":".join({str(path.parent) for path in root.rglob("lib*.so.*")}),
                               program, "--version"], capture_output=True, text=True)
        assert done.stdout.startswith("aliquot-k8s "), done.stderr
        ours = sorted(path for path in (root / "opt/aliquot").iterdir())
        assert len(ours) == 7
        for path in ours:
            done = subprocess.run([*enter, f"/{loader.relative_to(root)}", "--list",
                                   f"/{path.relative_to(root)}"], capture_output=True, text=True)
            assert done.returncode == 0 and "not found" not in done.stdout, done.stdout + done.stderr
        assert not [path for path in root.rglob("*") if path.name in ("sh", "bash", "busybox")]
