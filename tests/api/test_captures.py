# SPDX-License-Identifier: Apache-2.0
"""Requests of real clients, as captured on the wire, signed and sent again."""

import json
import os
import pathlib
import re

import pytest

from client import ADMIN, Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPTURES = pathlib.Path(os.environ.get("ALIQUOT_CAPTURES", ROOT / ".." / "shared" / "captures"))

# Paths that are not served yet: sessions' files, code and apps, folders, templates.
LATER = re.compile(r"/(folders|template|upload"
                   r"|download|resource/watcher|session/_/create-from"
                   r"|session/[^/]+/(files|upload|download|commit|interrupt|complete)"
                   r"|stream/session/[^/]+/(execute|apps|tcpproxy)|func|server|v2|services)")
# Roots of the GraphQL schema that come later: folders, inference, roles.
LATER_GQL = re.compile(r"vfolder_list|storage_volume|endpoint_list|myDeployments|myRoles")


def requests_in(path):
    command = ""
    for line in path.read_text().splitlines():
        if line.startswith("### "):
            command = line[4:]
        elif line.startswith('{"m"'):
            yield command, json.loads(line)


def cases():
    for log in sorted(CAPTURES.glob("client-*.log")) if CAPTURES.is_dir() else []:
        seen = set()
        for command, request in requests_in(log):
            key = (request["m"], request["p"], request["b"])
            if key in seen or request["sig"] != "OK" or LATER.match(request["p"]):
                continue
            if request["p"].startswith("/admin/gql") and LATER_GQL.search(request["b"]):
                continue
            seen.add(key)
            yield pytest.param(command, request, id=f"{log.stem}:{command[:40]}:{len(seen)}")


CASES = list(cases())


@pytest.mark.skipif(not CASES, reason="no captures of real clients here")
def test_captures_are_there():
    assert len(CASES) > 20


@pytest.mark.parametrize("command, request_", CASES)
def test_capture(cluster, command, request_):
    version = request_["h"].get("X-BackendAI-Version", "v6.20220315")
    client = Client(cluster.address, ADMIN, version)
    content_type = request_["h"].get("Content-Type", "text/plain")
    body = request_["b"].encode()
    if request_["p"].startswith("/events/"):
        sock, _, head = client.stream(request_["p"])
        sock.close()
        assert " 200 " in head.splitlines()[0], head
        return
    if request_["p"] == "/manager/status" and request_["m"] == "PUT":
        body = body.replace(b"frozen", b"running")  # others want to go on
    if b'"enqueueOnly": false' in body:
        body = body.replace(b'"maxWaitSeconds": 0', b'"maxWaitSeconds": 1')
    reply = client.raw(request_["m"], request_["p"], body,
                       client.headers(request_["m"], request_["p"], content_type))
    assert reply.status != 500 and reply.status != 401, reply
    if reply.status == 404:
        assert reply.slug == "object-not-found", reply  # of a session that is not ours
    elif request_["m"] == "PATCH" or "/rename" in request_["p"]:
        assert reply.status in (204, 400), reply  # the session may be ending
    else:
        assert reply.status < 300, (command, reply)
    if request_["p"] == "/admin/gql":
        errors = reply.json.get("errors")
        if '"gid": "g"' in request_["b"]:  # typed by somebody who took a name for an id
            assert "is 32 hexadecimal digits" in errors[0]["message"], reply
        else:
            assert not errors, errors


# ---- the web UI, through its server: what it asks GraphQL for ----

def complete(body):
    """What is left of a query that was cut off: closed, and without what its last fragments ask for."""
    text = json.loads(body + '"}' if not body.endswith("\\") else body[:-1] + '"}')["query"]
    text += "}" * (text.count("{") - text.count("}"))
    missing = set(re.findall(r"\.\.\.(\w+)", text)) - set(re.findall(r"fragment (\w+) on", text))
    return {"query": text + "".join(f" fragment {name} on ComputeSessionNode {{ id }}"
                                    for name in sorted(missing)), "variables": {"scopeId": "system"}}


def web_queries():
    found = {}
    for log in sorted(CAPTURES.glob("webui-*.log")) if CAPTURES.is_dir() else []:
        for line in log.read_text().splitlines():
            path, _, body = line.removeprefix("POST ").partition(" ")
            if path != "/func/admin/gql" or LATER_GQL.search(body):
                continue
            is_whole = body.endswith("}")
            found.setdefault(body, (log.stem, json.loads(body) if is_whole else complete(body)))
    return [pytest.param(query, id=f"{stem}:{query.get('operationName') or number}")
            for number, (stem, query) in enumerate(found.values())]


WEB_QUERIES = web_queries()


@pytest.mark.skipif(not WEB_QUERIES, reason="no captures of the web UI here")
def test_queries_of_the_web_ui_are_there():
    assert len(WEB_QUERIES) > 15


@pytest.mark.parametrize("query", WEB_QUERIES)
def test_query_of_the_web_ui(admin, query):
    """As captured, but for the project's id, which is that of another cluster."""
    [project] = [row["id"] for row in admin.get("/aliquot/v1/groups?limit=1000").json["items"]
                 if (row["name"], row["domain"]) == ("default", "default")]
    text = json.dumps(query).replace("7f6a0f1e-0000-4000-8000-000000000001", project)
    reply = admin.post("/admin/gql", json.loads(text))
    assert reply.status == 200 and not reply.json.get("errors"), reply
