# SPDX-License-Identifier: Apache-2.0
"""An agent that a test plays: frames and messages of the link (src/link/frame.h, message.h) with
the certificate that a real join made."""

import base64
import contextlib
import json
import pathlib
import select
import socket
import ssl
import struct
import subprocess
import uuid

ENDS = (OSError, ssl.SSLError)


class LinkAgent:
    """One control connection. 'said' are the messages of the manager."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.tls = ssl.create_default_context(ssl.Purpose.SERVER_AUTH,
                                              cafile=cluster.folder / name / "ca.crt")
        self.tls.check_hostname = False  # its name is not the address
        self.tls.load_cert_chain(cluster.folder / name / "agent.crt",
                                 cluster.folder / name / "agent.key")
        self.incarnation = str(uuid.uuid4())
        self.socket, self.got, self.said, self.seq, self.heard = None, b"", [], 0, 0

    def connect(self, hello=None, incarnation=None):
        """Greet; True if the manager says welcome."""
        self.close()
        self.incarnation = incarnation or self.incarnation
        host, port = self.cluster.link.split(":")
        plain = socket.create_connection((host, int(port)), timeout=30)
        self.socket = self.tls.wrap_socket(plain, server_hostname="aliquot-manager")
        self.got, self.seq, self.heard = b"", 0, 0
        self.send(hello or self.hello())
        return self.wait(("welcome", "refused", "fenced")).get("type") == "welcome"

    def hello(self, **more):
        return {"type": "hello", "protocol_min": 1, "protocol_max": 1, "agent_id": self.name,
                "incarnation": self.incarnation, "version": "0", "architecture": "x86_64",
                "slots": {"cpu": ["count", "4"], "mem": ["bytes", "8589934592"]}, **more}

    def send(self, message, seq=0, ack=None):
        """A message, or the bytes of one."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.socket.sendall(struct.pack(">IQQ", len(body) + 16, seq,
                                        self.heard if ack is None else ack) + body)

    def tell(self, message):
        """A reliable one."""
        self.seq += 1
        self.send(message, self.seq)

    def read(self, seconds=0.0):
        """Take what has come. False at the end of the connection."""
        while self.socket.pending() or select.select([self.socket], [], [], seconds)[0]:
            data = self.socket.recv(1 << 16)
            if not data:
                return False
            self.got += data
            seconds = 0.0
            self.take_frames()
        return True

    def take_frames(self):
        while len(self.got) >= 4:
            size = 4 + struct.unpack(">I", self.got[:4])[0]
            if len(self.got) < size:
                return
            seq = struct.unpack(">Q", self.got[4:12])[0]
            if size > 20:
                self.said.append(json.loads(self.got[20:size]))
            self.heard = max(self.heard, seq)
            self.got = self.got[size:]

    def wait(self, types, seconds=30):
        """The first message of one of the types, which is taken; {} if the connection ends."""
        for _ in range(int(seconds * 10)):
            for i, message in enumerate(self.said):
                if message["type"] in types:
                    return self.said.pop(i)
            if not self.read(0.1):
                return {}
        raise AssertionError(f"no {types} within {seconds} s: {self.said}")

    def close(self):
        if self.socket:
            with contextlib.suppress(*ENDS):
                self.socket.close()
        self.socket = None


def join_front(cluster, kind, name, home):
    """A daemon beside the manager joins, as "storage" or "proxy"; what takes a cluster's place for
    its LinkAgent, whose name is then "own"."""
    own = pathlib.Path(home) / "own"
    own.mkdir()
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", own / "agent.key",
                    "-out", own / "csr", "-subj", f"/CN={kind}:{name}"],
                   check=True, capture_output=True)
    token = cluster.client().post("/aliquot/v1/join-tokens", {kind: name}).json["token"]
    secret = base64.urlsafe_b64decode(token.removeprefix("aq1."))[32:56]
    joiner = LinkAgent.__new__(LinkAgent)
    joiner.cluster, joiner.name = cluster, name
    joiner.socket = None
    joiner.tls = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    joiner.tls.check_hostname, joiner.tls.verify_mode = False, ssl.CERT_NONE
    joiner.incarnation, joiner.said = str(uuid.uuid4()), []
    host, port = cluster.link.split(":")
    joiner.socket = joiner.tls.wrap_socket(socket.create_connection((host, int(port)), 30))
    joiner.got, joiner.seq, joiner.heard = b"", 0, 0
    joiner.send({"type": "join", "secret": base64.urlsafe_b64encode(secret).decode(),
                 "agent_id": f"{kind}:{name}", "csr": (own / "csr").read_text(),
                 "protocol_min": 1, "protocol_max": 1})
    joined = joiner.wait(("joined", "refused")) or joiner.said[0]  # it may have hung up
    joiner.close()
    assert joined.get("type") == "joined", joined
    (own / "agent.crt").write_text(joined["cert"])
    (own / "ca.crt").write_text(joined["ca"])

    class Place:
        folder, link = pathlib.Path(home), cluster.link
    return Place
