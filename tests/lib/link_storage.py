# SPDX-License-Identifier: Apache-2.0
"""A storage host that a test plays: it joins and answers over the link (src/link/message.h), and
keeps files in memory. A test says what is to fail.
"""

import tempfile
import threading
import time

from client import ADMIN
from cluster import wait_for
from link_agent import ENDS, LinkAgent, join_front

MODIFIED = 1_700_000_000_000_000


class Failed(Exception):
    """An errno's name, the field, and a text."""


class LinkStorage(LinkAgent):
    """'folders' are the files of each folder: path -> size, None for a directory. 'asked' is what
    the manager asked: (op, args), 'sizes' what it is to be told: (folder, files, bytes); 'fails' has an errno's name for each op that is to fail, and
    'progress' what is said of one before its answer, (done, total), once 'may_say' is set.
    """

    def __init__(self, cluster, name="local", volumes=("volume1",)):
        self.home = tempfile.TemporaryDirectory(prefix="aliquot-storage-")
        self.folders, self.asked, self.fails, self.volumes = {}, [], {}, volumes
        self.texts = {}  # of small files, by path, whatever the folder
        self.progress, self.may_say = {}, threading.Event()
        self.sizes = []
        self.thread, self.is_over = None, threading.Event()
        self.admin = cluster.client(ADMIN)
        super().__init__(join_front(cluster, "storage", name, self.home.name), "own")
        self.name = f"storage:{name}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.home.cleanup()

    def start(self):
        assert self.connect({"type": "hello", "protocol_min": 1, "protocol_max": 1,
                             "agent_id": self.name, "incarnation": self.incarnation,
                             "version": "0", "architecture": "x86_64", "slots": {},
                             "addr": "http://127.0.0.1:6021"})
        volumes = [{"name": name, "backend": "vfs", "capabilities": ["vfolder"]}
                   for name in self.volumes]
        self.send({"type": "storage.hello", "volumes": volumes})
        self.is_over.clear()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        admin, host = self.admin, f"{self.name.removeprefix('storage:')}:{self.volumes[0]}"
        wait_for(lambda: host in admin.get("/folders/_/all_hosts").json["allowed"],
                 what="the storage host to be known")

    def stop(self):
        self.is_over.set()
        if self.thread:
            self.thread.join()
        self.close()

    def serve(self):
        beat = time.monotonic()
        try:
            while not self.is_over.is_set() and self.read(0.05):
                for message in self.said:
                    if message["type"] == "storage.ask":
                        self.answer(message["request_id"], message["op"],
                                    message["args"])
                self.said.clear()
                while self.sizes:
                    folder, files, size = self.sizes.pop(0)
                    self.send({"type": "storage.size", "volume": self.volumes[0], "folder": folder,
                               "files": files, "bytes": size})
                if time.monotonic() - beat > 2:
                    beat = time.monotonic()
                    self.send(b"")
        except ENDS:
            pass

    def answer(self, number, op, args):
        self.asked.append((op, args))
        answer = {"type": "storage.answer", "request_id": number}
        try:
            if op in self.fails:
                raise Failed(self.fails[op], "", "as the test wants it")
            for done, total in self.progress.get(op, []):
                assert self.may_say.wait(30)
                self.send({"type": "storage.progress", "request_id": number, "done": done,
                           "total": total})
            result = getattr(self, f"do_{op}")(args["id"], args)
            answer["result"] = result or {}
        except Failed as e:
            answer |= {"error_code": e.args[0], "error_field": e.args[1], "error_text": e.args[2]}
        self.send(answer)

    # ---- the operations ----

    def find(self, folder, field, path):
        path = path.strip("/").removeprefix("./")
        if path in ("", "."):
            return ""
        if path not in self.folders[folder]:
            raise Failed("ENOENT", field, f"there is no '{path}'")
        return path

    def do_recount(self, folder, _):
        pass

    def do_create(self, folder, _):
        if folder in self.folders:
            raise Failed("EEXIST", "id", "it is there")
        self.folders[folder] = {}

    def do_purge(self, folder, _):
        if self.folders.pop(folder, None) is None:
            raise Failed("ENOENT", "id", "it is not there")

    def do_mkdir(self, folder, args):
        path = args["path"].strip("/")
        if path in self.folders[folder] and not args.get("exist_ok"):
            raise Failed("EEXIST", "path", f"'{path}' is there already")
        self.folders[folder][path] = None

    def do_list(self, folder, args):
        top = self.find(folder, "path", args["path"])
        names = sorted(path.removeprefix(f"{top}/" if top else "")
                       for path in self.folders[folder]
                       if path.rpartition("/")[0] == top and path > (args.get("after") or ""))
        page = names[:args["limit"]]
        return {"items": [self.item(folder, f"{top}/{name}".strip("/"), name) for name in page],
                "more": len(names) > len(page)}

    def item(self, folder, path, name):
        size = self.folders[folder][path]
        return {"name": name, "type": "DIRECTORY" if size is None else "FILE", "size": size or 0,
                "mode": 0o40755 if size is None else 0o100644, "created": MODIFIED,
                "modified": MODIFIED}

    def do_move(self, folder, args):
        source = self.find(folder, "src", args["src"])
        self.folders[folder][args["dst"].strip("/")] = self.folders[folder].pop(source)

    def do_rename(self, folder, args):
        source = self.find(folder, "path", args["path"])
        top = source.rpartition("/")[0]
        self.folders[folder][f"{top}/{args['new_name']}".strip("/")] = \
            self.folders[folder].pop(source)

    def do_delete(self, folder, args):
        for path in [self.find(folder, "files", path) for path in args["files"]]:
            del self.folders[folder][path]

    def do_read(self, folder, args):
        path = self.find(folder, "path", args["path"])
        if path not in self.texts:
            raise Failed("EISDIR", "path", f"'{path}' is not a file")
        return {"text": self.texts[path]}

    def do_usage(self, folder, _):
        sizes = [size for size in self.folders[folder].values() if size is not None]
        return {"files": len(sizes), "bytes": sum(sizes)}

    def do_clone(self, folder, args):
        self.folders[args["to"]] = dict(self.folders[folder])

    def do_upload(self, folder, args):
        """The file is there at once."""
        self.folders[folder][args["path"].strip("/")] = args["size"]
        return {"token": "up", "url": "http://127.0.0.1:6021/upload"}

    def do_download(self, folder, args):
        self.find(folder, "path", args["path"])
        return {"token": "down", "url": "http://127.0.0.1:6021/download"}
