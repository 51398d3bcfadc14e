# SPDX-License-Identifier: Apache-2.0
"""A cluster with a storage host, and tokens as it signs them."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import shutil
import time
import uuid

import fetched
from cluster import Cluster, wait_for
from ports import free_port
from world import BUILD, ROOT

CLIENTS = ROOT / "tests" / "compat" / "tus"


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Stored(Cluster):
    """Its volume is 'volume1', in 'volume' unless settings say otherwise."""

    def start_storage(self, **settings):
        self.port = getattr(self, "port", None) or free_port()
        self.state = self.folder / "storage"
        self.volume = getattr(self, "volume", self.folder / "volume1")
        self.volume.mkdir(mode=0o700, exist_ok=True)
        if not (self.state / "storage.crt").exists():
            token = self.client().post("/aliquot/v1/join-tokens", {"storage": "local"}).json["token"]
            done = self.run("aliquot-storage", "--state", self.state, "join", self.link, token)
            assert done.returncode == 0, done.stderr
        self.start_program("storage", BUILD / "aliquot-storage", "--state", self.state, "--listen",
                           f"127.0.0.1:{self.port}",
                           **{"ALIQUOT_STORAGE_VOLUMES": f"volume1:{self.volume}", **settings})
        wait_for(self.is_stored, 60, "the storage host")

    def is_stored(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/health")[0] == 200
        return False

    def ask(self, method, path, body=None, **headers):
        """Status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body,
                               {name.replace("_", "-"): str(value) for name, value in headers.items()})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def place(self, folder):
        """Where a folder's files lie."""
        return self.volume / folder.hex[:2] / folder.hex[2:4] / folder.hex[4:]

    def make_folder(self):
        folder = uuid.uuid4()
        self.place(folder).mkdir(parents=True)
        return folder

    def token(self, op, folder, path, seconds=3600, **claims):
        """As the storage host makes it; its key is the test's to read."""
        head = text(b'{"alg":"HS256","typ":"JWT"}')
        more = {"upload": str(uuid.uuid4()), "quota": 0} if op == "upload" else {}
        body = text(json.dumps({"op": op, "volume": "volume1", "folder": str(folder), "path": path,
                                "exp": int(time.time()) + seconds, **more, **claims}).encode())
        key = (self.state / "token.key").read_bytes()
        return f"{head}.{body}." + text(hmac.digest(key, f"{head}.{body}".encode(), hashlib.sha256))

    def upload(self, folder, path, size, **claims):
        return "/upload?token=" + self.token("upload", folder, path, size=size, **claims)

    def download(self, folder, path, op="download", **more):
        return "/download?token=" + self.token(op, folder, path, **more)

    def patch(self, url, data, offset, **headers):
        return self.ask("PATCH", url, data, Upload_Offset=offset, **{
            "Tus_Resumable": "1.0.0", "Content_Type": "application/offset+octet-stream", **headers})

    def offset(self, url):
        status, headers, _ = self.ask("HEAD", url, Tus_Resumable="1.0.0")
        assert status == 200, status
        return int(headers["Upload-Offset"])


def install_tus():
    """tus-js-client, once on a machine: the folder for NODE_PATH."""
    if not shutil.which("npm"):
        fetched.run("npm", [ROOT / "tools" / "install-packages", "node"])
    mark = hashlib.sha256((CLIENTS / "package-lock.json").read_bytes()).hexdigest()[:16]
    with fetched.folder(f"tus-js-client-{mark}") as (folder, is_new):
        if is_new:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(CLIENTS / name, folder / name)
            fetched.run("tus-js-client", ["npm", "ci", "--silent", "--ignore-scripts"], cwd=folder)
    return folder / "node_modules"
