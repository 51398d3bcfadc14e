# SPDX-License-Identifier: Apache-2.0
"""Images made entry by entry, a registry, and the comparison of file trees."""

import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tarfile
import threading

from cluster import wait_for
from ports import free_port
from world import BUILD

OCI = "application/vnd.oci.image."
WRONG = "sha256:" + "0" * 64


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def folder(name, **more):
    return dict(name=name, type=tarfile.DIRTYPE, **{"mode": 0o755, **more})


def file(name, data=b"", **more):
    return dict(name=name, data=data, **more)


def link(name, target, **more):
    return dict(name=name, type=tarfile.SYMTYPE, linkname=target, mode=0o777, **more)


def hard_link(name, target):
    return dict(name=name, type=tarfile.LNKTYPE, linkname=target)


def device(name, major, minor, **more):
    return dict(name=name, type=tarfile.CHRTYPE, devmajor=major, devminor=minor, **more)


def archive(entries, form=tarfile.PAX_FORMAT):
    """A tar file with exactly these entries in this order."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for entry in entries:
            entry = dict(entry)
            data = entry.pop("data", b"")
            xattrs = entry.pop("xattrs", {})
            info = tarfile.TarInfo()
            info.mode = 0o644
            info.mtime = 1500000000
            for key, value in entry.items():
                setattr(info, key, value)
            info.size = len(data) if info.type == tarfile.REGTYPE else 0
            info.pax_headers = {**info.pax_headers,
                                **{"SCHILY.xattr." + key: value for key, value in xattrs.items()}}
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def compress(data, how):
    if how == "gzip":
        return gzip.compress(data, 1, mtime=0)
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True,
                              check=True).stdout
    return data


def linked(files, there=()):
    """Entries of files, {name in the image: path on the node}, of what they are linked with, and
    of all folders above but those that are there."""
    said = subprocess.run(["ldd", *files.values()], capture_output=True, text=True,
                          check=False).stdout
    libraries = {word for line in said.splitlines() if not line.endswith(":")
                 for word in line.split() if word.startswith("/")}
    paths = {**{path[1:]: path for path in sorted(libraries)}, **files}
    above = {str(parent) for name in paths for parent in pathlib.PurePath(name).parents}
    return [*map(folder, sorted(above - {".", *there})),
            *(file(name, pathlib.Path(path).read_bytes(), mode=0o755)
              for name, path in paths.items())]


def programs(*names):
    """Entries of the node's programs of these names, and of what they are linked with."""
    return [folder("usr"), folder("usr/bin"), link("bin", "usr/bin"), *linked(
        {f"usr/bin/{pathlib.Path(name).name}": os.path.realpath(shutil.which(name))
         for name in names}, there=("usr", "usr/bin"))]


class Layout:
    """An OCI image layout."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        (self.path / "blobs/sha256").mkdir(parents=True)
        (self.path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        self.manifests = []

    def blob(self, data):
        digest = sha256(data)
        (self.path / "blobs/sha256" / digest[7:]).write_bytes(data)
        return digest

    def read(self, digest):
        """A manifest, an index or a configuration."""
        return json.loads((self.path / "blobs/sha256" / digest[7:]).read_bytes())

    def image(self, tag, layers, how="gzip", architecture="amd64", config=None, diff_ids=None,
              body=None, **run):
        """'layers': tar files, or pairs of a tar file and how it is compressed. 'body': more members
        of the manifest; one that is None is left out."""
        described, digests = [], []
        for layer in layers:
            data, form = layer if isinstance(layer, tuple) else (layer, how)
            packed = compress(data, form)
            digests.append(sha256(data))
            described.append({
                "mediaType": OCI + "layer.v1.tar" + ("+" + form if form else ""),
                "digest": self.blob(packed), "size": len(packed)})
        config = config or {
            "architecture": architecture, "os": "linux", "config": run,
            "rootfs": {"type": "layers", "diff_ids": diff_ids or digests}}
        config = json.dumps(config).encode()
        manifest = {
            "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
            "config": {"mediaType": OCI + "config.v1+json", "digest": self.blob(config),
                       "size": len(config)},
            "layers": described, **(body or {})}
        manifest = json.dumps({k: v for k, v in manifest.items() if v is not None}).encode()
        digest = self.blob(manifest)
        self.name(tag, digest, len(manifest), OCI + "manifest.v1+json")
        return digest

    def list(self, tag, items, kind="index.v1+json", **body):
        """An index of (digest, further members of the descriptor)."""
        index = {"schemaVersion": 2, "mediaType": OCI + kind, "manifests": [
            {"mediaType": OCI + "manifest.v1+json", "digest": digest, "size":
             (self.path / "blobs/sha256" / digest[7:]).stat().st_size, **more}
            for digest, more in items], **body}
        index = json.dumps({k: v for k, v in index.items() if v is not None}).encode()
        digest = self.blob(index)
        self.name(tag, digest, len(index), OCI + "index.v1+json")
        return digest

    def index(self, tag, *items):
        """'items': (digest, architecture) of images."""
        index = json.dumps({
            "schemaVersion": 2, "mediaType": OCI + "index.v1+json",
            "manifests": [{"mediaType": OCI + "manifest.v1+json", "digest": digest,
                           "size": (self.path / "blobs/sha256" / digest[7:]).stat().st_size,
                           "platform": {"os": "linux", "architecture": architecture}}
                          for digest, architecture in items]}).encode()
        digest = self.blob(index)
        self.name(tag, digest, len(index), OCI + "index.v1+json")
        return digest

    def name(self, tag, digest, size, kind):
        self.manifests = [m for m in self.manifests
                          if m["annotations"]["org.opencontainers.image.ref.name"] != tag]
        self.manifests.append({"mediaType": kind, "digest": digest, "size": size, "annotations": {
            "org.opencontainers.image.ref.name": tag}})
        (self.path / "index.json").write_text(json.dumps(
            {"schemaVersion": 2, "manifests": self.manifests}))

    def reference(self, tag):
        return f"oci:{self.path}:{tag}"

    def push(self, tag, registry, name, *options):
        subprocess.run(["skopeo", "copy", "-q", "--insecure-policy", "--dest-tls-verify=false",
                        *options, self.reference(tag), f"docker://{registry.address}/{name}"],
                       check=True, stdin=subprocess.DEVNULL)
        return f"{registry.address}/{name}"


class Registry:
    """Debian's docker-registry on loopback."""

    def __init__(self, path, users=None):
        self.path = pathlib.Path(path)
        self.path.mkdir()
        self.address = f"127.0.0.1:{free_port()}"
        self.process = None
        auth = ""
        if users:
            (self.path / "users").write_text(users)
            auth = f'auth: {{htpasswd: {{realm: test, path: "{self.path}/users"}}}}\n'
        (self.path / "config.yml").write_text(
            f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {self.path}/data}}}}\n"
            f"http: {{addr: \"{self.address}\"}}\nlog: {{level: error}}\n{auth}")

    def start(self):
        with (self.path / "log").open("a") as log:
            self.process = subprocess.Popen(
                ["docker-registry", "serve", self.path / "config.yml"], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        host, port = self.address.split(":")

        def answers():
            with contextlib.suppress(OSError):
                socket.create_connection((host, int(port)), 1).close()
                return True
        wait_for(answers, 60, "the registry")
        return self

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def blob_path(self, digest):
        return self.path / "data/docker/registry/v2/blobs/sha256" / digest[7:9] / digest[7:] / "data"


@contextlib.contextmanager
def pushed(path, base, *names):
    """A registry on loopback beneath 'path', with an image of each name, as "team/small:1": the layers
    of 'base', and one of its own. Gives its address and the names by which they are pulled."""
    registry = Registry(path / "registry").start()
    layout = Layout(path / "layout")
    try:
        for number, name in enumerate(names):
            layout.image(f"image{number}", [*base, archive([file("name", name.encode())])])
            layout.push(f"image{number}", registry, name)
        yield registry.address, [f"{registry.address}/{name}" for name in names]
    finally:
        registry.stop()


class LooseRegistry:
    """Serves a layout as the repository "a", and as any other: each name of it is a tag. It says of
    manifests whatever type it is told to, where a real one checks what it is given; 'answers' has
    statuses and bodies that it gives instead."""

    def __init__(self, layout, **types):
        self.layout, self.types, self.answers, self.asked = layout, types, {}, []
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                registry.answer(self, self.path.split("/v2/")[1])

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def find(self, path):
        _, place, what = path.rsplit("/", 2)
        if place == "manifests" and not what.startswith("sha256:"):
            what = {m["annotations"]["org.opencontainers.image.ref.name"]: m["digest"]
                    for m in self.layout.manifests}.get(what, WRONG)
        file = self.layout.path / "blobs/sha256" / what[7:]
        if not file.exists():
            return 404, "application/json", b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":' \
                                            b'"manifest unknown"}]}', what
        data = file.read_bytes()
        kind = "application/octet-stream"
        if place == "manifests":
            kind = json.loads(data).get("mediaType", OCI + "manifest.v1+json")
            kind = self.types.get(path.rpartition("/")[2], kind)
        return 200, kind, data, what

    def answer(self, request, path):
        status, kind, data, digest = 200, "application/json", b"{}", None
        self.asked.append(path)
        if path in self.answers:
            status, data = self.answers[path]
        elif path:
            status, kind, data, digest = self.find(path)
        request.send_response(status)
        for key, value in (("Content-Type", kind), ("Content-Length", len(data)),
                           ("Docker-Content-Digest", digest)):
            if value is not None:
                request.send_header(key, str(value))
        request.end_headers()
        if request.command == "GET":
            self.write(request, data)

    def write(self, request, data):
        request.wfile.write(data)

    def name(self, tag):
        return f"{self.address}/a:{tag}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Store:
    """An image store that a small program drives."""

    def __init__(self, path, **settings):
        self.path = pathlib.Path(path)
        self.path.mkdir(exist_ok=True)
        self.state = self.path / "state"
        self.config = self.path / "agent.toml"
        self.env = dict(os.environ)
        self.settings = {"allow": "* host oci:/ oci-archive:/ docker-archive:/ rootfs:/",
                         "keep-free": "1", "unpack": str(BUILD / "aliquot-unpack"),
                         "fetch": str(BUILD / "aliquot-fetch"), **settings}

    def command(self, verb, *args):
        self.config.write_text("[image]\n" + "".join(
            f"{key} = {json.dumps(value)}\n" for key, value in self.settings.items()))
        return [BUILD / "tests/system/image/aliquot-image-driver", self.state, self.config, verb,
                *args]

    def start(self, verb, *args):
        return subprocess.Popen(self.command(verb, *args), env=self.env, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, start_new_session=True)

    def run(self, verb, *args, timeout=120):
        """The lines that it prints."""
        with self.start(verb, *args) as process:
            try:
                out, _ = process.communicate("", timeout)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        self.returncode = process.returncode
        return out.splitlines()

    def get(self, name, verb="get"):
        """The image's layers, topmost first."""
        lines = self.run(verb, name)
        assert lines and lines[-1].startswith("ready "), lines[-1:]
        return lines[-1].split()[3].split(":")

    def failure(self, name, verb="get"):
        lines = self.run(verb, name)
        assert lines and lines[-1].startswith("failed "), lines[-1:]
        return lines[-1].split(" ", 2)[2]

    def entries(self, kind):
        path = self.state / "images" / kind
        return sorted(os.listdir(path)) if path.exists() else []

    def images(self):
        return {words[0]: words[2:] for words in map(str.split, self.run("ls"))
                if words[0].startswith("sha256:")}

    def check_clean(self):
        """After a start, nothing half done is left but what a pull can go on with."""
        self.run("gc")
        for kind in ("layers", "images", "names"):
            assert not [name for name in self.entries(kind) if "." in name], kind


@contextlib.contextmanager
def mounted(layers, path):
    """The layers as one read-only tree."""
    path = pathlib.Path(path)
    (path / "bottom").mkdir(parents=True)
    (path / "tree").mkdir()
    subprocess.run(["mount", "-t", "overlay", "aliquot", path / "tree", "-o",
                    "ro,lowerdir=" + ":".join([*layers, str(path / "bottom")])], check=True,
                   env={**os.environ, "LIBMOUNT_FORCE_MOUNT2": "always"})  # fsconfig(2) takes 256
    try:
        yield path / "tree"
    finally:
        subprocess.run(["umount", "--lazy", path / "tree"], check=True)


@contextlib.contextmanager
def small_disk(path, size):
    """The folder, on a disk of its own while the test runs."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "aliquot", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def describe(path):
    """Everything that can be said about a file, without following it."""
    info = os.lstat(path)
    facts = {"mode": oct(info.st_mode), "owner": (info.st_uid, info.st_gid),
             "mtime": info.st_mtime_ns, "rdev": info.st_rdev}
    if stat.S_ISREG(info.st_mode):
        with open(path, "rb") as data:
            facts["content"] = (info.st_size, hashlib.file_digest(data, "sha256").hexdigest()
                                if hasattr(hashlib, "file_digest")
                                else hashlib.sha256(data.read()).hexdigest())
    if stat.S_ISLNK(info.st_mode):
        facts["target"] = os.readlink(path)
    facts["xattrs"] = {name: os.getxattr(path, name, follow_symlinks=False)
                       for name in os.listxattr(path, follow_symlinks=False)
                       if not name.startswith("trusted.overlay.")}
    return facts


def tree(root):
    """Relative path (bytes) -> facts; hard links as groups of names."""
    root, found, inodes = os.fsencode(root), {}, {}
    for base, folders, files in os.walk(root):
        for name in [b"."] + folders + files if base == root else folders + files:
            path = os.path.join(base, name)
            relative = os.path.relpath(path, root)
            found[relative] = describe(path)
            info = os.lstat(path)
            if stat.S_ISREG(info.st_mode) and info.st_nlink > 1:
                inodes.setdefault(info.st_ino, []).append(relative)
    # how many links a file has in all is not compared: overlayfs counts those that are hidden
    for names in (names for names in inodes.values() if len(names) > 1):
        for name in names:
            found[name]["linked"] = sorted(names)
    return found
