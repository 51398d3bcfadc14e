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
import shutil
import socket
import subprocess
import tempfile
import time

RELEASES = {"3.9": "bullseye", "3.11": "bookworm", "3.13": "trixie"}
PACKAGES = "base-files,base-passwd,coreutils,dash,libc-bin,libpython3-stdlib,python3-minimal"
LEFT_OUT = ("doc", "man", "locale")
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}
CHUNK = 1 << 20


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(base) / "aliquot-demo"
    path.mkdir(parents=True, exist_ok=True)
    return path


def bootstrap(release, target):
    """Write the root file system of a release to the file 'target'."""
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
    subprocess.run(["mmdebstrap", "--quiet", "--variant=extract", f"--include={PACKAGES}",
                    *excluded, release, target], check=True, capture_output=True, text=True)


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


def build(version):
    """The layout of one image, from the cache if it is there; its folder."""
    kept = cache_dir() / f"python-{version}"
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="new-") as folder:
        tar, layout = pathlib.Path(folder) / "root.tar", pathlib.Path(folder) / "layout"
        bootstrap(RELEASES[version], tar)
        layout.mkdir()
        write_layout(tar, layout, version)
        layout.rename(kept)
    return kept


class Registry:
    """Debian's docker-registry on a free port of loopback, its data below 'folder'."""

    def __init__(self, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{s.getsockname()[1]}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "config.yml").write_text(
            "version: 0.1\nlog: {level: error}\n"
            f"storage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
            f"http: {{addr: '{self.address}'}}\n")
        log = (folder / "log").open("w")
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM",
                                         "docker-registry", "serve", folder / "config.yml"],
                                        stdout=log, stderr=log, start_new_session=True)
        self.wait()

    def wait(self):
        host, port = self.address.split(":")
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.05)
        raise SystemExit("docker-registry does not start")

    def reference(self, version):
        return f"{self.address}/demo/python:{version}"

    def push(self, layout, version):
        subprocess.run(["skopeo", "copy", "--quiet", "--dest-tls-verify=false",
                        f"oci:{layout}:{version}", f"docker://{self.reference(version)}"],
                       check=True, capture_output=True, text=True)

    def stop(self):
        self.process.terminate()
        self.process.wait()
