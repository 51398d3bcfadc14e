# SPDX-License-Identifier: Apache-2.0
"""A forward proxy for apt that keeps what it fetched: package_proxy.py CACHE SOCKET_FD.

It serves the listening socket that comes over the unix socket SOCKET_FD, so it can
answer inside a network namespace that has no other way out, and ends when that
is closed. Only plain GET below dists/ and pool/ of an archive is passed on. Packages
and files by hash never change and are kept; all else is asked for again with
If-Modified-Since, and the kept file is served where nobody answers. Files get their
names when they are whole, so several proxies may share a folder.
"""

import email.utils
import http.client
import http.server
import os
import pathlib
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.parse

KEEP_BYTES = 6 << 30
CHUNK = 1 << 18
TIMEOUT_SEC = 30
PARALLEL = 32  # connections; more wait
SAFE_URL = re.compile(r"http://([A-Za-z0-9.-]+(?::\d+)?)((?:/[A-Za-z0-9~%_.+:=-]+)+)$")
FIXED = re.compile(r"/by-hash/|\.u?deb$")


def upstream_proxy():
    """(host, port) of the proxy that this machine's apt uses, or None."""
    said = os.environ.get("http_proxy", "")
    if not said and shutil.which("apt-config"):
        shell = subprocess.run(["apt-config", "shell", "proxy", "Acquire::http::Proxy"],
                               capture_output=True, text=True).stdout
        said = shell.strip().removeprefix("proxy=").strip("'")
    if said in ("", "DIRECT"):
        return None
    parts = urllib.parse.urlsplit(said if "://" in said else f"http://{said}")
    return parts.hostname, parts.port or 3128


def trim(cache):
    """Remove the files that were not used for the longest time, down to KEEP_BYTES."""
    found = []
    for path in cache.rglob("*"):
        try:
            if path.is_file():
                found.append((path.stat().st_atime, path.stat().st_size, path))
        except FileNotFoundError:
            continue
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= KEEP_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= size


def seconds_of(date):
    return email.utils.parsedate_to_datetime(date).timestamp()


def keep(file, path):
    """Give an unnamed file its name, in place of an older one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    # a folder given as descriptor has Python call linkat(), which follows the link in /proc
    descriptors = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.link(str(file.fileno()), new, src_dir_fd=descriptors, follow_symlinks=True)
    finally:
        os.close(descriptors)
    os.replace(new, path)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 2 * TIMEOUT_SEC

    def log_message(self, *_):
        pass

    def refuse(self, status, text):
        body = (text + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = SAFE_URL.match(self.path)
        if not url or ".." in self.path or not re.search("/(dists|pool)/", self.path):
            self.refuse(403, "only archives of Debian packages, by http")
            return
        kept = self.server.cache / url[1] / url[2].lstrip("/")
        with self.server.room:
            if FIXED.search(url[2]) and kept.is_file():
                self.send_kept(kept)
            else:
                self.fetch(url, kept)

    def fetch(self, url, kept):
        headers = {"User-Agent": self.headers.get("User-Agent", "apt")}
        if kept.is_file() and kept.stat().st_mtime:  # 0: the server does not say
            headers["If-Modified-Since"] = email.utils.formatdate(kept.stat().st_mtime,
                                                                  usegmt=True)
        proxy = self.server.upstream
        link = http.client.HTTPConnection(*(proxy or (url[1],)), timeout=TIMEOUT_SEC)
        try:
            link.request("GET", self.path if proxy else url[2], headers=headers)
            answer = link.getresponse()
        except OSError as e:
            link.close()
            if kept.is_file():
                self.send_kept(kept)
            else:
                self.refuse(503, f"{url[1]} cannot be reached: {e}")
            return
        try:
            if answer.status == 304:
                self.send_kept(kept)
            elif answer.status == 200:
                self.pass_on(answer, kept)
            else:
                self.pass_status(answer)
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            link.close()

    def pass_status(self, answer):
        body = answer.read(CHUNK)
        self.send_response(answer.status)
        if answer.headers["Location"]:
            self.send_header("Location", answer.headers["Location"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self, answer, kept):
        """Send an answer on while it comes, and keep it when it is whole."""
        length, changed = answer.headers["Content-Length"], answer.headers["Last-Modified"]
        self.send_file_headers(length, changed)
        with open(os.open(self.server.cache, os.O_TMPFILE | os.O_RDWR, 0o644), "wb") as file:
            got, chunk = 0, answer.read(CHUNK)
            while chunk:
                file.write(chunk)
                got += len(chunk)
                following = answer.read(CHUNK)
                if not following:
                    self.keep_whole(file, kept, length, got, changed)
                self.wfile.write(chunk)
                chunk = following

    def keep_whole(self, file, kept, length, got, changed):
        """Before its last piece is sent, so who has it all finds it kept."""
        if length is not None and got != int(length):
            raise http.client.IncompleteRead(b"", int(length) - got)
        file.flush()
        os.utime(file.fileno(), (time.time(), seconds_of(changed) if changed else 0))
        keep(file, kept)

    def send_file_headers(self, length, changed):
        self.send_response(200)
        if changed:
            self.send_header("Last-Modified", changed)
        if length is None:
            self.close_connection = True
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", length)
        self.end_headers()

    def send_kept(self, kept):
        with kept.open("rb") as file:
            status = os.fstat(file.fileno())
            os.utime(file.fileno(), (time.time(), status.st_mtime))
            since = self.headers.get("If-Modified-Since")
            if since and 0 < status.st_mtime <= seconds_of(since):
                self.send_response(304)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            changed = status.st_mtime and email.utils.formatdate(status.st_mtime, usegmt=True)
            self.send_file_headers(str(status.st_size), changed)
            shutil.copyfileobj(file, self.wfile, CHUNK)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True

    def __init__(self, listening, cache):
        super().__init__(None, Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.cache = cache
        self.room = threading.Semaphore(PARALLEL)
        self.upstream = upstream_proxy()

    def handle_error(self, *_):
        pass  # a client that went away


def main():
    cache = pathlib.Path(sys.argv[1])
    cache.mkdir(parents=True, exist_ok=True)
    with socket.socket(fileno=int(sys.argv[2])) as giver:
        _, fds, _, _ = socket.recv_fds(giver, 1, 1)
        if not fds:
            return
        server = Server(socket.socket(fileno=fds[0]), cache)
        trim(cache)
        giver.send(b"1")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        giver.recv(1)


if __name__ == "__main__":
    main()
