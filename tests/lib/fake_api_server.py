# SPDX-License-Identifier: Apache-2.0
"""An API server of Kubernetes as far as our programs use one: it lists, watches, binds, evicts and
patches.

Objects are kept as they are given. Each change has a version of its own; a watch gets those after
its version, or 410 where they are forgotten. What the API server itself would check is not checked,
but for what a Binding may do.
"""

import copy
import http.server
import json
import re
import threading
import time
import urllib.parse
import uuid

KINDS = {"nodes": "Node", "pods": "Pod", "events": "Event", "leases": "Lease",
         "secrets": "Secret", "mutatingwebhookconfigurations": "MutatingWebhookConfiguration"}
BOOKMARK_SECONDS = 0.5
PATCHES = {dict: "application/merge-patch+json", list: "application/json-patch+json"}


def merge(old, patch):
    """A merge patch, as RFC 7386 has it."""
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return {k: v for k, v in patch.items() if v is not None} if isinstance(patch, dict) else patch
    new = dict(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merge(new.get(key, {}), value) if isinstance(value, dict) else value
    return new


def apply_steps(item, steps):
    """A JSON Patch, as RFC 6902 has it: tests, additions and removals."""
    for step in steps:
        *parents, last = (word.replace("~1", "/").replace("~0", "~")
                          for word in step["path"].split("/")[1:])
        at = item
        for word in parents:
            at = at[int(word)] if isinstance(at, list) else at[word]
        if step["op"] == "add":
            at[last] = step["value"]
        elif step["op"] == "remove":
            del at[last]
        elif at.get(last) != step["value"]:
            raise Refused(422, "Invalid", "the object has been modified")
    return item


class Refused(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def status(self):
        return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.code,
                "reason": self.reason, "message": self.message}


class Objects:
    """What the API server has, and what has changed. Calls of tests and of requests."""

    def __init__(self):
        self.changed = threading.Condition()
        self.version = 100
        self.items = {kind: {} for kind in KINDS}  # key -> object
        self.log = []       # (version, kind of objects, type, object)
        self.oldest = 100   # a watch from an older version is refused

    def _note(self, kind, word, item):
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.log.append((self.version, kind, word, copy.deepcopy(item)))
        self.changed.notify_all()

    @staticmethod
    def key(item):
        metadata = item["metadata"]
        space = metadata.get("namespace")
        return f"{space}/{metadata['name']}" if space else metadata["name"]

    def put(self, kind, item):
        """New, or in place of what had the name."""
        with self.changed:
            item = copy.deepcopy(item)
            key = self.key(item)
            known = self.items[kind].get(key)
            item["metadata"].setdefault(
                "uid", known["metadata"]["uid"] if known else str(uuid.uuid4()))
            self.items[kind][key] = item
            self._note(kind, "MODIFIED" if known else "ADDED", item)
            return copy.deepcopy(item)

    def get(self, kind, key):
        with self.changed:
            if key not in self.items[kind]:
                raise Refused(404, "NotFound", f'{kind} "{key}" not found')
            return copy.deepcopy(self.items[kind][key])

    def all(self, kind):
        with self.changed:
            return copy.deepcopy(list(self.items[kind].values()))

    def patch(self, kind, key, patch):
        with self.changed:
            item = self.get(kind, key)
            if isinstance(patch, list):
                return self.put(kind, apply_steps(item, patch))
            wanted = patch.get("metadata", {}).get("resourceVersion")
            if wanted and wanted != item["metadata"]["resourceVersion"]:
                raise Refused(409, "Conflict", "the object has been modified")
            return self.put(kind, merge(item, patch))

    def delete(self, kind, key):
        with self.changed:
            item = self.items[kind].pop(key)
            self._note(kind, "DELETED", item)

    def bind(self, key, binding):
        """As the API server: annotations are copied, over what the pod has."""
        with self.changed:
            pod = self.get("pods", key)
            metadata = binding["metadata"]
            if metadata.get("uid") and metadata["uid"] != pod["metadata"]["uid"]:
                raise Refused(409, "Conflict", f"Precondition failed: UID in precondition: "
                              f"{metadata['uid']}, UID in object meta: {pod['metadata']['uid']}")
            if pod["spec"].get("nodeName"):
                raise Refused(409, "Conflict", f"pod {key} is already assigned to node "
                              f"\"{pod['spec']['nodeName']}\"")
            if pod["metadata"].get("deletionTimestamp"):
                raise Refused(409, "Conflict", f"pod {key} is being deleted, cannot be assigned")
            pod["spec"]["nodeName"] = binding["target"]["name"]
            pod["metadata"].setdefault("annotations", {}).update(metadata.get("annotations") or {})
            self.put("pods", pod)

    def forget_log(self):
        """Compaction: watches have to list again."""
        with self.changed:
            self.version += 1
            self.log.clear()
            self.oldest = self.version


def selects(selector, item):
    for term in filter(None, selector.split(",")):
        field, _, value = term.partition("=")
        at = item
        for word in field.split("."):
            at = at.get(word, "") if isinstance(at, dict) else ""
        if at != value.removeprefix("="):
            return False
    return True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    PATH = re.compile(r"/(?:api/v1|apis/[^/]+/[^/]+)(?:/namespaces/(?P<space>[^/]+))?"
                      r"/(?P<kind>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<part>[a-z]+))?$")

    def log_message(self, *_):
        pass

    def send(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer(self):
        api = self.server.api
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        match = self.PATH.match(url.path)
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        try:
            if not match or match["kind"] not in KINDS:
                raise Refused(404, "NotFound", "the server could not find the requested resource")
            where = {part: urllib.parse.unquote(text) if text else text
                     for part, text in match.groupdict().items()}
            api.asked(self.command, self.path, body)
            if query.get("watch"):
                self.watch(where["kind"], query)
            else:
                self.send(*self.act(api.objects, where, query, body))
        except Refused as e:
            self.send(e.code, e.status())

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

    def act(self, objects, where, query, body):
        kind, space, name = where["kind"], where["space"], where["name"]
        key = f"{space}/{name}" if space else name
        if self.command == "POST" and where["part"] == "binding":
            objects.bind(key, body)
            return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
        if self.command == "POST" and where["part"] == "eviction":
            return 201, self.server.api.evict(body)
        if self.command == "POST":
            meta = body["metadata"]
            if space:
                meta.setdefault("namespace", space)
            if "generateName" in meta:
                meta["name"] = meta["generateName"] + uuid.uuid4().hex
            if objects.key(body) in objects.items[kind]:
                raise Refused(409, "AlreadyExists", f'{kind} "{objects.key(body)}" already exists')
            return 201, objects.put(kind, body)
        if self.command == "PATCH":
            if self.headers["Content-Type"] != PATCHES[type(body)]:
                raise Refused(415, "UnsupportedMediaType", "the body of the request was in an "
                              f"unknown format: {self.headers['Content-Type']}")
            return 200, objects.patch(kind, key, body)
        if self.command == "PUT":
            wanted = body["metadata"].get("resourceVersion")
            if wanted and wanted != objects.get(kind, key)["metadata"]["resourceVersion"]:
                raise Refused(409, "Conflict", "the object has been modified")
            return 200, objects.put(kind, body)
        if self.command == "DELETE":
            objects.get(kind, key)
            objects.delete(kind, key)
            return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        return (200, objects.get(kind, key)) if name else self.list(objects, kind, space, query)

    def list(self, objects, kind, space, query):
        pages = self.server.api.pages
        if query.get("continue"):
            if query["continue"] not in pages:
                raise Refused(410, "Expired", "the continue token is too old")
            version, items = pages.pop(query["continue"])
        else:
            with objects.changed:
                version = objects.version
                items = copy.deepcopy([
                    item for item in objects.items[kind].values()
                    if selects(query.get("fieldSelector", ""), item)
                    and space in (None, item["metadata"].get("namespace"))])
        limit = int(query.get("limit") or 0) or len(items)
        more = ""
        if len(items) > limit:
            more = str(uuid.uuid4())
            pages[more] = version, items[limit:]
        return 200, {"kind": KINDS[kind] + "List", "apiVersion": "v1", "items": items[:limit],
                     "metadata": {"resourceVersion": str(version), "continue": more}}

    def event(self, word, item):
        data = json.dumps({"type": word, "object": item}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def watch(self, kind, query):
        api, objects = self.server.api, self.server.api.objects
        at = int(query.get("resourceVersion") or 0)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        turn = api.turn
        try:
            while turn == api.turn and not api.is_ended:
                with objects.changed:
                    if at < objects.oldest:
                        news = None
                    else:
                        news = [entry for entry in objects.log if entry[0] > at]
                        if not news:
                            objects.changed.wait(BOOKMARK_SECONDS)
                            news = [entry for entry in objects.log if entry[0] > at]
                    version = objects.version
                if news is None:
                    self.event("ERROR", Refused(410, "Expired", "too old resource version").status())
                    break
                for number, of, word, item in news:
                    at = number
                    if of == kind and selects(query.get("fieldSelector", ""), item):
                        self.event(word, item)
                if not news and version > at and at >= objects.oldest:
                    at = version
                if not news:
                    self.event("BOOKMARK", {"kind": KINDS[kind],
                                            "metadata": {"resourceVersion": str(at)}})
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass
        self.close_connection = True


class ApiServer:
    """Serves at .url, also after end() and start(). .requests are those that were not watches, as
    (method, path, body)."""

    def __init__(self):
        self.objects = Objects()
        self.requests = []
        self.turn = 0          # the watches of an earlier one end
        self.pages = {}        # what is left of lists that are asked for in pages
        self.delay = 0         # seconds before each answer to a Binding
        self.refusals = []     # (code, reason, message) for the next Bindings
        self.evicted = []      # what was asked for
        self.refuse_evictions = 0  # so many, at first
        self.port = 0
        self.start()

    def start(self):
        self.is_ended = False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.server.api = self
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def asked(self, method, path, body):
        self.requests.append((method, path, body))
        if path.endswith("/binding"):
            time.sleep(self.delay)
            if self.refusals:
                raise Refused(*self.refusals.pop(0))

    def evict(self, body):
        if self.refuse_evictions:
            self.refuse_evictions -= 1
            raise Refused(429, "TooManyRequests", "a budget forbids it")
        self.evicted.append(body)
        return body

    def end_watches(self, forget=False):
        """All of them; 'forget': what was before is too old by then."""
        if forget:
            self.objects.forget_log()
        self.turn += 1

    def end(self):
        self.is_ended = True
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
