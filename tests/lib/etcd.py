# SPDX-License-Identifier: Apache-2.0
"""etcd servers of a test's own, on loopback, in folders of their own, and a client of their JSON
gateway that shares nothing with ours.
"""

import base64
import http.client
import json
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

import world
from ports import free_port

PREFIX = "/sorna/local/"


def coded(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


class Refused(Exception):
    """etcd's answer to what it does not do."""


class Server:
    """A cluster of one, started by start(), or by 'with'. Its folder goes when the test was killed,
    too. With 'tls' it wants certificates of clients, too, which make_certificates() has made."""

    def __init__(self, tls=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aliquot-etcd-"))
        self.reaper = subprocess.Popen([sys.executable, world.__file__], stdin=subprocess.PIPE,
                                       text=True, start_new_session=True)
        print(self.folder, file=self.reaper.stdin, flush=True)
        self.port, self.peer_port = free_port(), free_port()
        self.tls, self.token, self.process = tls, None, None
        if tls:
            self.make_certificates()

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % ("https" if self.tls else "http", self.port)

    def make_certificates(self):
        """ca.crt, server.crt and client.crt, with their keys."""
        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30")
        openssl("req", "-x509", *key, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt")
        for name in ("server", "client"):
            openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out",
                    f"{name}.csr")
            (self.folder / "ext").write_text(
                "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                    "-CAcreateserial", "-days", "30", "-extfile", "ext", "-out", f"{name}.crt")

    # ---- the process ----

    def start(self):
        peer = "http://127.0.0.1:%d" % self.peer_port
        words = ["etcd", "--name", "test", "--data-dir", self.folder / "data",
                 "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"test={peer}", "--log-level", "error"]
        if self.tls:
            words += ["--client-cert-auth", "--trusted-ca-file", self.folder / "ca.crt",
                      "--cert-file", self.folder / "server.crt",
                      "--key-file", self.folder / "server.key"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, words)],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        self.await_ready()

    def await_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                self.call("/v3/kv/range", {"key": coded("health")})
                return
            except Refused:
                return  # it has users
            except (OSError, http.client.HTTPException):
                assert self.process.poll() is None and time.monotonic() < end, \
                    (self.folder / "log").read_text()[-2000:]
                time.sleep(0.1)

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGKILL):
        if self.process:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def empty(self):
        """Stopped, without data; the next start is that of a new cluster with the same name."""
        self.stop()
        shutil.rmtree(self.folder / "data")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
        self.stop()
        self.reaper.stdin.close()
        self.reaper.wait()

    # ---- requests ----

    def call(self, path, body):
        if self.tls:
            context = ssl.create_default_context(cafile=self.folder / "ca.crt")
            context.load_cert_chain(self.folder / "client.crt", self.folder / "client.key")
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10,
                                                     context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("POST", path, json.dumps(body),
                               {"Authorization": self.token} if self.token else {})
            reply = connection.getresponse()
            text = json.loads(reply.read())
        finally:
            connection.close()
        if reply.status != 200:
            raise Refused(text)
        return text

    def put(self, key, value, prefix=PREFIX, **more):
        whole = prefix.encode() + (key if isinstance(key, bytes) else key.encode())
        return self.call("/v3/kv/put", {"key": coded(whole), "value": coded(value), **more})

    def delete(self, key, prefix=PREFIX):
        self.call("/v3/kv/deleterange", {"key": coded(prefix + key)})

    def tree(self, prefix=PREFIX):
        """All keys below the prefix, as text."""
        found = self.call("/v3/kv/range", {"key": coded(prefix),
                                           "range_end": coded(prefix[:-1] + "0")})
        return {base64.b64decode(pair["key"]).decode(errors="replace")[len(prefix):]:
                base64.b64decode(pair.get("value", "")).decode(errors="replace")
                for pair in found.get("kvs", [])}

    def compact(self):
        """Everything but the latest revision goes."""
        revision = self.call("/v3/kv/range", {"key": coded("x")})["header"]["revision"]
        self.call("/v3/kv/compaction", {"revision": revision, "physical": True})

    def login(self, user, password):
        self.token = self.call("/v3/auth/authenticate", {"name": user,
                                                         "password": password})["token"]

    def use_auth(self, user, password, root_password="root-password"):
        """Turn users on: root, and one that has the prefix."""
        for name, word in (("root", root_password), (user, password)):
            self.call("/v3/auth/user/add", {"name": name, "password": word})
        self.call("/v3/auth/role/add", {"name": "root"})
        self.call("/v3/auth/role/add", {"name": "tree"})
        self.call("/v3/auth/role/grant", {"name": "tree", "perm": {
            "permType": "READWRITE", "key": coded(PREFIX), "range_end": coded(PREFIX[:-1] + "0")}})
        self.call("/v3/auth/user/grant", {"user": "root", "role": "root"})
        self.call("/v3/auth/user/grant", {"user": user, "role": "tree"})
        self.call("/v3/auth/enable", {})
        self.login("root", root_password)

    def set_password(self, user, password):
        self.call("/v3/auth/user/changepw", {"name": user, "password": password})
