# SPDX-License-Identifier: Apache-2.0
"""The images of the demo: three Debian releases, each with its own Python.

A root file system is unpacked from Debian's packages (none is configured: the
interpreter needs no more), becomes the one layer of an OCI image, and is kept
for the next time. A registry on loopback serves them.
"""

import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import commands
import screen
from folders import cache_dir
from ports import free_port

RELEASES = {"3.9": "bullseye", "3.11": "bookworm", "3.13": "trixie"}
PACKAGES = "base-files,base-passwd,coreutils,dash,libc-bin,libpython3-stdlib,python3-minimal"
NOTEBOOK = "3.11"  # this one has Jupyter, too
LEFT_OUT = ("doc", "man", "locale")
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}
CHUNK = 1 << 20
NEW = "new-"  # how folders begin that are being filled


def bootstrap_remedy(output):
    """What to do about an mmdebstrap that said 'output' and failed."""
    if "o space left" in output:
        return f"free some space in {cache_dir()}; df -h shows how much there is"
    if re.search(r"esolv|onnect|ailed to fetch|imed out", output):
        return "Debian's package servers cannot be reached: check the network and http_proxy"
    return "tools/install-packages demo installs what it needs"


def show_step(version, line):
    """What mmdebstrap does now, which takes a minute or more in all."""
    if line.startswith("I: "):
        screen.note(f"image with Python {version}: {line[3:].strip()}")


def bootstrap(version, target):
    """Write the root file system of an image to the file 'target'. mmdebstrap has processes and
    mounts in namespaces that end with it, however it ends: a SIGTERM it answers after minutes."""
    release = RELEASES[version]
    packages = PACKAGES + (",jupyter-notebook" if version == NOTEBOOK else "")
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
    commands.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                  "mmdebstrap", "--variant=extract", f"--include={packages}", *excluded, release,
                  target],
                 f"making a root file system of Debian {release}", bootstrap_remedy,
                 on_line=lambda line: show_step(version, line),
                 ended_by=signal.SIGKILL, start_new_session=True,
                 env={**os.environ, "TMPDIR": str(target.parent)})


class Layout:
    """An OCI image layout being written."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def add(self, media_type, path):
        """Move a file in as a blob; returns its descriptor."""
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
        size = path.stat().st_size
        path.rename(self.folder / "blobs" / "sha256" / digest.hexdigest())
        return {"mediaType": media_type, "digest": f"sha256:{digest.hexdigest()}", "size": size}

    def add_json(self, media_type, value):
        path = self.folder / "new"
        path.write_text(json.dumps(value))
        return self.add(media_type, path)


def compress(source, target):
    """gzip a file; returns the digest of what was in it."""
    digest = hashlib.sha256()
    with source.open("rb") as file, gzip.GzipFile(target, "wb", compresslevel=1, mtime=0) as out:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            out.write(chunk)
    return f"sha256:{digest.hexdigest()}"


def write_layout(tar, folder, version):
    screen.note(f"image with Python {version}: packing {tar.stat().st_size >> 20} MiB")
    layout, packed = Layout(folder), folder / "layer"
    diff_id = compress(tar, packed)
    layer = layout.add("application/vnd.oci.image.layer.v1.tar+gzip", packed)
    config = layout.add_json("application/vnd.oci.image.config.v1+json", {
        "architecture": ARCHITECTURE[os.uname().machine], "os": "linux",
        "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["/bin/sh"],
                   "Labels": {"ai.backend.kernelspec": "1", "ai.backend.role": "COMPUTE",
                              "ai.backend.resource.min.cpu": "1",
                              "ai.backend.resource.min.mem": "64m",
                              "ai.backend.runtime-type": "python",
                              "ai.backend.runtime-path": "/usr/bin/python3"}},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created_by": f"Debian with Python {version}"}]})
    manifest = layout.add_json("application/vnd.oci.image.manifest.v1+json", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": [layer]})
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))


def layout_of(version):
    """Where the layout of an image is kept."""
    return cache_dir() / f"python-{version}{'-jupyter' if version == NOTEBOOK else ''}"


def build(version):
    """Make the layout of one image unless the cache has it; its folder. The cache is locked."""
    kept = layout_of(version)
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=NEW) as folder:
        tar, layout = pathlib.Path(folder) / "root.tar", pathlib.Path(folder) / "layout"
        pathlib.Path(folder).chmod(0o755)  # apt downloads as a user of its own
        bootstrap(version, tar)
        layout.mkdir()
        write_layout(tar, layout, version)
        os.sync()  # what has its name is whole, whatever happens to the machine
        layout.rename(kept)
    return kept


def remove_partial():
    """Remove what was not finished when a demo was killed. The cache is locked."""
    for folder in cache_dir().glob(NEW + "*"):
        shutil.rmtree(folder)


class Registry:
    """Debian's docker-registry on a free port of loopback, its data below 'folder'."""

    def __init__(self, folder):
        folder.mkdir()
        self.address = f"127.0.0.1:{free_port()}"
        (folder / "config.yml").write_text(json.dumps({
            "version": 0.1, "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
            "http": {"addr": self.address}}))
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = commands.start(
                ["docker-registry", "serve", folder / "config.yml"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def wait(self):
        host, port = self.address.split(":")
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex((host, int(port))) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise commands.Failed("docker-registry does not start", self.log.read_text())

    def reference(self, version):
        return f"{self.address}/demo/python:{version}"

    def push(self, layout, version):
        commands.run(["skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:{version}",
                      f"docker://{self.reference(version)}"],
                     f"copying the image with Python {version} to the registry", self.remedy)

    def remedy(self, output):
        """What to do about a failure: the registry's log knows why, its client often does not."""
        if "o space left" in output + self.log.read_text():
            return f"free some space in {self.log.parent}; df -h shows how much there is"
        return f"see what the registry says in {self.log}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        commands.finish(self.process)
