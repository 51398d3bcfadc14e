# SPDX-License-Identifier: Apache-2.0
"""Requests to each route of aliquot-web, of clients at aliquot-storage, and of aliquot-proxy."""

import io
import json
import os
import secrets
import tarfile
import uuid

from pipeline import step
from web import COOKIE

LARGE = 300_000  # bytes of a file: more than is answered at once


# ---- aliquot-web ----

def web_steps(web):
    """Without a login, with one that was never given, and with one."""
    browser = web.browser()
    assert browser.login().json["authenticated"]
    given = f"{COOKIE}={browser.cookies[COOKIE]}"
    made_up = f"{COOKIE}={secrets.token_urlsafe(32)}"
    steps = [step("GET", path) for path in
             ("/", "/index.html", "/config.toml", "/health", "/livez", "/readyz", "/func/ping",
              "/{mark}", "/pipeline/{mark}", "/console/")]
    steps += [step("HEAD", "/"), step("PUT", "/{mark}", b"body"), step("OPTIONS", "/func/auth"),
              step("POST", "/server/login", b"{}"), step("POST", "/server/login", b"["),
              step("POST", "/server/update-password-no-auth", b"{}"),
              step("POST", "/func/auth/signup", b"{}"),
              step("POST", "/server/logout", b"", Cookie=made_up)]
    for cookie in ({}, {"Cookie": made_up}, {"Cookie": given}):
        steps += [step("POST", "/server/login-check", b"{}", **cookie),
                  step("POST", "/server/extend-login-session", b"", **cookie),
                  step("GET", "/func/auth?echo={mark}", **cookie),
                  step("GET", "/func/nothing/{mark}", **cookie),
                  step("GET", "/func/aliquot/v1/sessions", **cookie),
                  step("GET", "/func/stream/session/{mark}/pty", **cookie),
                  step("POST", "/func/session", b"{}", Content_Type="application/json", **cookie),
                  step("POST", "/func/admin/gql", json.dumps({"query": "{ agents { id } }"}).encode(),
                       Content_Type="application/json", **cookie),
                  step("POST", "/func/admin/gql", b"hidden", X_BackendAI_Encoded="true", **cookie)]
    return steps


def web_telling():
    return step("GET", "/server/{mark}", is_telling=True)


# ---- aliquot-storage ----

def archive():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("packed")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"data"))
    return out.getvalue()


def upload_steps(url):
    tus = {"Tus_Resumable": "1.0.0"}
    bytes_ = {**tus, "Content_Type": "application/offset+octet-stream"}
    return [step("HEAD", url, **tus), step("POST", url, b"", Upload_Length=100, **tus),
            step("POST", url, b"", **tus), step("DELETE", url, **tus),
            step("PATCH", url, b"late", Upload_Offset=50, **bytes_),
            step("PATCH", url, b"first", Upload_Offset=0, **bytes_),
            step("PATCH", url, b"", Upload_Offset=0, **bytes_),
            step("PATCH", url, b"x" * 200, Upload_Offset=0, **bytes_),
            step("PATCH", url, b"typeless", Upload_Offset=0, **tus),
            step("PATCH", url, b"old", Upload_Offset=0, Tus_Resumable="0.1.0")]


def storage_steps(stored):
    """With tokens of a folder of its own, and with one that nobody made."""
    folder = stored.make_folder()
    place = stored.place(folder)
    (place / "small").write_bytes(b"small")
    (place / "large").write_bytes(os.urandom(LARGE))
    tree = "token=" + stored.token("upload", folder, "", tree=True)
    steps = [step("GET", "/health"), step("OPTIONS", "/upload"), step("GET", "/{mark}"),
             step("PUT", f"/archive?{tree}", archive()), step("PUT", f"/archive?{tree}", b"broken"),
             step("PUT", "/archive?token={mark}", archive()),
             step("GET", "/download?token={mark}"), step("POST", "/download?token={mark}", b"")]
    for url in (stored.upload(folder, "up", 100), "/upload?token={mark}", "/upload"):
        steps += upload_steps(url)
    for name in ("small", "large", "missing"):
        url = stored.download(folder, name)
        steps += [step("GET", url), step("HEAD", url), step("POST", url, b""),
                  step("GET", url, Range="bytes=1-2")]
    return [*steps, step("GET", stored.download(folder, "", archive=True)),
            step("GET", stored.download(uuid.uuid4(), "small"))]


# ---- aliquot-proxy ----

def proxy_steps():
    """Apps are of nobody: no session runs here."""
    app = f"/app/{uuid.uuid4()}/web"
    cookie = {"Cookie": "aliquot_app=" + "a" * 64}
    return [step("GET", "/health"), step("HEAD", "/health"), step("GET", "/"), step("GET", "/{mark}"),
            step("GET", "/_aliquot/setup?token={mark}"), step("GET", "/_aliquot/setup"),
            step("POST", "/_aliquot/setup?token={mark}", b"body"),
            step("GET", "/v2/proxy/auth?token={mark}"), step("GET", "/v2/proxy/auth"),
            step("GET", "/v2/proxy/{mark}/" + f"{uuid.uuid4()}/add?app=web"),
            step("OPTIONS", "/v2/proxy/auth", Origin="http://localhost"),
            *(step(method, path, b"body" if method == "POST" else None, **given)
              for method in ("GET", "POST") for path in (app, app + "/", app + "/{mark}")
              for given in ({}, cookie))]


def proxy_telling():
    return step("GET", "/proxy/token/session", is_telling=True, Origin="http://{mark}.localhost")


# ---- aliquot-k8s scheduler ----

def scheduler_steps(pods, nodes):
    def post(path, body):
        return step("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode(),
                    Content_Type="application/json")

    def bind(name, space, uid, node):
        return post("/bind", {"PodName": name, "PodNamespace": space, "PodUID": uid, "Node": node})
    steps = [step("GET", "/health"), step("GET", "/{mark}"), step("GET", "/bind"),
             bind("none", "team", str(uuid.uuid4()), nodes[0])]
    for path in ("/filter", "/prioritize", "/bind", "/preempt"):
        steps += [post(path, body) for body in (b"[", {})]
    for i, one in enumerate(pods):
        about = one["metadata"]
        steps += [post("/filter", {"Pod": one, "NodeNames": nodes}),
                  post("/prioritize", {"Pod": one, "NodeNames": nodes}),
                  bind(about["name"], about["namespace"], about["uid"], nodes[i % len(nodes)])]
    return steps
