# SPDX-License-Identifier: Apache-2.0
"""People make accounts for themselves where [signup] lets them, and a hook decides who may."""

import contextlib
import http.server
import json
import pathlib
import ssl
import subprocess
import tempfile
import threading

import pytest

from client import ADMIN, Client
from cluster import Cluster, wait_for

V1 = "/aliquot/v1"
PASSWORD = "long enough"
COMMAND = """#!/usr/bin/python3
import json, os, subprocess, sys
asked = json.load(sys.stdin)
how = asked["email"].split("@")[0]
if how == "slow":
    child = subprocess.Popen(["sleep", "1000"])
    open(os.path.dirname(__file__) + "/slow", "w").write(str(child.pid))
    child.wait()
if how == "long":
    print("x" * 100000)
if how == "broken":
    sys.exit(3)
if how == "junk":
    sys.exit("not JSON")
print(json.dumps({
    "refused": {"allow": False, "message": "not %s" % asked["full_name"]},
    "mute": {"allow": False},
    "student": {"allow": True, "policy": "students", "status": "before-verification"},
    "nowhere": {"allow": True, "projects": ["no-such-project"]},
    "yes": "yes",
    "told": {"allow": False, "message": json.dumps(asked)},
    "who": {"allow": False, "message": "%d %s %s %s" % (
        os.getuid(), os.getgroups(), sorted(set(os.environ) - {"LC_CTYPE"}), os.getcwd())},
}.get(how, {"allow": True})))
"""


def served(**settings):
    made = Cluster(ALIQUOT_SIGNUP_ENABLED="true", **settings)
    made.start_manager()
    return made


@pytest.fixture(scope="module")
def plain():
    with served() as made:
        yield made
        made.stop()


@pytest.fixture(scope="module")
def script():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "decide"
        path.write_text(COMMAND)
        path.chmod(0o755)
        path.parent.chmod(0o777)
        yield path


@pytest.fixture(scope="module")
def hooked(script):
    with served(ALIQUOT_SIGNUP_HOOK_COMMAND=f"{script} --unused", ALIQUOT_SIGNUP_HOOK_TIMEOUT="30s",
                ALIQUOT_SIGNUP_STATUS="active") as made:
        assert made.client(ADMIN).post(f"{V1}/keypair-policies", {"name": "students"}).status == 201
        yield made
        made.stop()


def sign_up(cluster, email, **more):
    return cluster.client(None).post("/auth/signup", {
        "domain": "default", "email": email, "password": PASSWORD, **more})


def login(cluster, email):
    return cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": email, "password": PASSWORD})


def row(cluster, email):
    rows = cluster.client(ADMIN).get(f"{V1}/users?all=true&limit=1000").json["items"]
    return next((row for row in rows if row["email"] == email), None)


def audited(cluster, email, outcome):
    return wait_for(lambda: [entry for entry in cluster.client(ADMIN).get(
        f"{V1}/audit-log?action=signup&limit=1000").json["items"]
        if (entry["user"], entry["outcome"]) == (email, outcome)], 30, f"{outcome} of {email}")


def test_nobody_can_sign_up_unless_the_settings_say_so(cluster):
    refused = sign_up(cluster, "new@example.com")
    assert (refused.status, refused.slug) == (403, "generic-forbidden")
    assert row(cluster, "new@example.com") is None


def test_an_account_with_a_keypair(plain):
    made = sign_up(plain, "ann@example.com", username="ann", full_name="Ann Kim",
                   description="of the lasers")
    assert made.status == 201 and set(made.json) == {"access_key", "secret_key"}
    own = Client(plain.address, (made.json["access_key"], made.json["secret_key"]))
    assert own.get("/auth?echo=x").status == 200
    user = row(plain, "ann@example.com")
    assert (user["username"], user["full_name"], user["role"], user["status"], user["projects"],
            user["domain"]) == ("ann", "Ann Kim", "user", "active", ["default"], "default")
    assert login(plain, "ann@example.com").json["data"]["access_key"] == made.json["access_key"]
    [key] = [key for key in plain.client(ADMIN).get(f"{V1}/keypairs?limit=1000").json["items"]
             if key["user"] == "ann@example.com"]
    assert (key["policy"], key["is_active"], key["is_admin"]) == ("default", True, False)
    [entry] = audited(plain, "ann@example.com", "ok")
    assert (entry["address"], entry["access_key"]) == ("127.0.0.1", made.json["access_key"])
    assert entry["user_id"] == user["id"]


def test_the_command_line_signs_up(plain):
    done = plain.cli("signup", "typed@example.com", "--full-name", "Typed", "--password-stdin",
                     says=PASSWORD + "\n")
    assert "log in: aliquot login http" in done.stderr
    assert row(plain, "typed@example.com")["full_name"] == "Typed"
    again = plain.cli("signup", "typed@example.com", "--password-stdin", says=PASSWORD + "\n")
    assert again.returncode != 0 and "Email already exists" in again.stderr


@pytest.mark.parametrize("given,field", [
    ({"domain": "elsewhere"}, "domain"), ({"email": "no-address"}, "email"),
    ({"email": "a@b@c"}, "email"), ({"email": "a b@example.com"}, "email"),
    ({"email": "\u001b[2J@example.com"}, "email"), ({"password": "short"}, "password"),
    ({"username": "admin@lablup.com"}, "username"), ({"role": "superadmin"}, "role"),
    ({"status": "active"}, "status"), ({"full_name": "x" * 129}, "full_name")])
def test_what_is_wrong_is_named(plain, given, field):
    refused = sign_up(plain, **{"email": "wrong@example.com", **given})
    assert (refused.status, refused.slug) == (400, "invalid-api-params")
    assert field in refused.json["data"]
    assert row(plain, "wrong@example.com") is None


def test_an_address_has_one_account(plain):
    assert sign_up(plain, "twice@example.com", full_name="First").status == 201
    again = sign_up(plain, "twice@example.com", full_name="Second")
    assert (again.status, again.slug) == (400, "generic-bad-request")
    assert again.json["msg"] == "Email already exists"
    assert row(plain, "twice@example.com")["full_name"] == "First"
    audited(plain, "twice@example.com", "failed")
    plain.client(ADMIN).send("DELETE", f"{V1}/users/twice@example.com")
    assert sign_up(plain, "twice@example.com").json["msg"] == "Email already exists"
    named = sign_up(plain, "other@example.com", username="admin")
    assert "username" in named.json["data"] and row(plain, "other@example.com") is None


def test_two_at_a_time_make_one_account(plain):
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(sign_up(plain, "race@example.com")))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [_] = [reply for reply in replies if reply.status == 201]
    for reply in replies:  # that it exists, or is being made
        assert reply.status in (201, 409) or reply.json["msg"] == "Email already exists", reply
    assert login(plain, "race@example.com").status == 200


def test_an_administrator_verifies_accounts(script):
    with served(ALIQUOT_SIGNUP_STATUS="before-verification") as made:
        keys = sign_up(made, "new@example.com").json
        own = Client(made.address, (keys["access_key"], keys["secret_key"]))
        assert own.get("/auth?echo=x").status == 401
        assert login(made, "new@example.com").json["msg"] == (
            "This account needs email verification.")
        assert made.client(ADMIN).send("PATCH", f"{V1}/users/new@example.com",
                                       {"status": "active"}).status == 200
        assert own.get("/auth?echo=x").status == 200
        assert login(made, "new@example.com").status == 200
        made.stop()


def test_the_hook_is_told_who_asks(hooked):
    asked = json.loads(sign_up(hooked, "told@example.com", username="told", full_name="T O'Ld",
                               description="why", token="invited").json["msg"])
    assert asked == {"type": "signup", "domain": "default", "email": "told@example.com",
                     "username": "told", "full_name": "T O'Ld", "description": "why",
                     "token": "invited", "address": "127.0.0.1"}


def test_the_hook_decides(hooked):
    assert sign_up(hooked, "fine@example.com").status == 201
    refused = sign_up(hooked, "refused@example.com", full_name="you")
    assert (refused.status, refused.slug, refused.json["msg"]) == (400, "rejected-by-hook",
                                                                   "not you")
    audited(hooked, "refused@example.com", "failed")
    assert sign_up(hooked, "mute@example.com").json["msg"] == "signup not allowed"
    assert row(hooked, "refused@example.com") is None and row(hooked, "mute@example.com") is None
    keys = sign_up(hooked, "student@example.com").json
    assert row(hooked, "student@example.com")["status"] == "before-verification"
    [key] = [key for key in hooked.client(ADMIN).get(f"{V1}/keypairs?limit=1000").json["items"]
             if key["access_key"] == keys["access_key"]]
    assert key["policy"] == "students"


def test_the_hook_decides_before_it_is_told_who_exists(hooked):
    assert sign_up(hooked, "admin@lablup.com").json["msg"] == "Email already exists"
    refused = sign_up(hooked, "mute@example.com")
    assert hooked.client(ADMIN).post(f"{V1}/users", {"email": "mute@example.com",
                                                     "domain": "default"}).status == 201
    assert sign_up(hooked, "mute@example.com").json == refused.json


@pytest.mark.parametrize("how,why", [
    ("long", "more than 16384 bytes"), ("broken", "exit status is 3"),
    ("junk", "exit status is 1"), ("yes", "what the hook answers"),
    ("nowhere", "no-such-project")])
def test_without_a_decision_nobody_gets_an_account(hooked, how, why):
    refused = sign_up(hooked, f"{how}@example.com")
    assert (refused.status, refused.slug) == (503, "service-unavailable")
    assert why not in refused.json["msg"] and row(hooked, f"{how}@example.com") is None
    wait_for(lambda: any(f"{how}@example.com" in line and why in line
                         for line in hooked.programs["manager"].log.read_text().splitlines()),
             30, "the reason in the log")


def test_a_command_runs_as_nobody_with_nothing_of_the_managers(hooked):
    said = sign_up(hooked, "who@example.com").json["msg"]
    assert said == "65534 [] ['PATH'] /"


def has_ended(pid):
    """Gone, or waited for by nobody yet."""
    try:
        return not pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_command_that_takes_too_long_is_killed_with_its_children(script):
    with served(ALIQUOT_SIGNUP_HOOK_COMMAND=str(script), ALIQUOT_SIGNUP_HOOK_TIMEOUT="1s") as made:
        replies = []
        asking = threading.Thread(target=lambda: replies.append(sign_up(made, "slow@example.com")))
        asking.start()
        asking.join(60)
        assert replies[0].status == 503
        noted = script.parent / "slow"
        if noted.exists():  # else it was killed before it had a child
            pid = noted.read_text()
            wait_for(lambda: has_ended(pid), 30, "its end")
        made.stop()


class Decider(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        how = body["email"].split("@")[0]
        text = json.dumps({"allow": how != "refused", "message": "by URL"}).encode()
        self.send_response(500 if how == "broken" else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def test_a_url_decides():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Decider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with served(ALIQUOT_SIGNUP_HOOK_URL=f"http://127.0.0.1:{server.server_port}/x") as made:
            assert sign_up(made, "fine@example.com").status == 201
            assert sign_up(made, "refused@example.com").json["msg"] == "by URL"
            assert sign_up(made, "broken@example.com").status == 503
            server.shutdown()
            server.server_close()
            assert sign_up(made, "away@example.com").status == 503
            made.stop()
    finally:
        server.server_close()


def certificate(folder, name, subject):
    """A certificate that only who is told of it trusts, and its key."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=hook",
                    "-addext", f"subjectAltName={subject}", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return cert, key


@contextlib.contextmanager
def deciding(cert, key):
    """The port of a server that decides over TLS."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Decider)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hook")
    return {"right": certificate(folder, "right", "IP:127.0.0.1"),
            "another": certificate(folder, "another", "DNS:elsewhere.example")}


def test_a_url_decides_over_tls(certificates):
    cert, key = certificates["right"]
    with deciding(cert, key) as port, served(
            ALIQUOT_SIGNUP_HOOK_URL=f"https://127.0.0.1:{port}/x", SSL_CERT_FILE=str(cert)) as made:
        for count in range(3):  # one connection or several
            assert sign_up(made, f"fine-{count}@example.com").status == 201
        refused = sign_up(made, "refused@example.com")
        assert (refused.slug, refused.json["msg"]) == ("rejected-by-hook", "by URL")
        assert sign_up(made, "broken@example.com").status == 503
        made.stop()


@pytest.mark.parametrize("shown, trusted", (("right", "another"), ("another", "another")),
                         ids=("unknown", "of another name"))
def test_who_cannot_prove_to_be_the_hook_decides_nothing(certificates, shown, trusted):
    with deciding(*certificates[shown]) as port, served(
            ALIQUOT_SIGNUP_HOOK_URL=f"https://127.0.0.1:{port}/x",
            SSL_CERT_FILE=str(certificates[trusted][0])) as made:
        refused = sign_up(made, "fine@example.com", full_name="Not For Strangers")
        assert (refused.status, refused.slug) == (503, "service-unavailable")
        assert row(made, "fine@example.com") is None
        assert "certificate" in made.log_of("manager")
        made.stop()


@pytest.mark.parametrize("settings,why", [
    ({"STATUS": "sometimes"}, "signup.status"), ({"HOOK_COMMAND": "relative"}, "hook-command"),
    ({"HOOK_COMMAND": "/bin/true", "HOOK_USER": "no-such-user"}, "hook-user"),
    ({"HOOK_URL": "ftp://example.com"}, "hook-url"),
    ({"HOOK_URL": "http://example.com", "HOOK_COMMAND": "/bin/true"}, "leave one of them out")])
def test_a_wrong_setting_is_named_at_the_start(settings, why):
    with Cluster(ALIQUOT_SIGNUP_ENABLED="true",
                 **{f"ALIQUOT_SIGNUP_{key}": value for key, value in settings.items()}) as made:
        with pytest.raises(AssertionError):
            made.start_manager()
        assert why in made.logs()
        made.programs.clear()
