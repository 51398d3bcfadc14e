# SPDX-License-Identifier: Apache-2.0
"""aliquot admin import: many users from a CSV file, all of them or none."""

import csv
import io
import json
import subprocess

import pytest

from client import Client
from cluster import Cluster, wait_for
from world import BUILD

pytestmark = [pytest.mark.engines, pytest.mark.gate]

ALIQUOT = str(BUILD / "aliquot")
ROUTE = "/aliquot/v1/users/import"


class Importer:
    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.env = {**cluster.env, **cluster.cli_env()}
        self.folder = folder

    def run(self, *words, stdin=None):
        return subprocess.run([ALIQUOT, "admin", *words], env=self.env, capture_output=True,
                              text=True, timeout=120, input=stdin or "")

    def file(self, text):
        path = self.folder / "users.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def load(self, text, *options, status=0):
        done = self.run("import", self.file(text), "-o", "json", *options)
        assert done.returncode == status, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout) if status == 0 else done.stderr

    def users(self):
        done = self.run("user", "ls", "-o", "json", "-n", "0")
        assert done.returncode == 0, done.stderr
        return {row["email"]: row for row in json.loads(done.stdout)}

    def audited(self):
        """Each new user, and each keypair, has an entry."""
        rows = [row for what in ("user", "keypair") for row in self.cluster.client().get(
            f"/aliquot/v1/audit-log?action=create-{what}").json["items"]]
        return [row["user"] for row in rows] == ["admin@lablup.com"] * 4

    def login(self, email, password):
        return Client(self.cluster.address, None).send(
            "POST", "/auth/authorize", {"type": "keypair", "domain": "default",
                                        "username": email, "password": password})


@pytest.fixture(scope="module")
def importer(tmp_path_factory):
    with Cluster(LC_ALL="C.UTF-8") as cluster:
        cluster.start_manager()
        importer = Importer(cluster, tmp_path_factory.mktemp("import"))
        assert importer.run("project", "create", "lasers").returncode == 0
        assert importer.run("policy", "create", "small").returncode == 0
        yield importer
        cluster.check_audits()


def test_a_table_becomes_users_with_keypairs_and_passwords(importer):
    table = ("E-Mail,Name,Username,Projects,Role,Policy,Password\r\n"
             'ann@one.example,"Kim, ""Ann""",ann,default; lasers,admin,small,correct horse\r\n'
             "bob@one.example,밥,,,,,\r\n\r\n,,,,,,\r\n")
    rows = importer.load(b"\xef\xbb\xbf" + table.encode())
    assert [(row["line"], row["email"], row["status"]) for row in rows] == [
        (2, "ann@one.example", "created"), (3, "bob@one.example", "created")]
    users = importer.users()
    ann, bob = users["ann@one.example"], users["bob@one.example"]
    assert (ann["full_name"], ann["username"], ann["role"]) == ('Kim, "Ann"', "ann", "admin")
    assert sorted(ann["projects"]) == ["default", "lasers"] and bob["projects"] == ["default"]
    assert bob["full_name"] == "밥" and bob["username"] == "bob@one.example"
    assert rows[0]["password"] == "correct horse" and len(rows[1]["password"]) == 20
    for row in rows:
        client = Client(importer.cluster.address, (row["access_key"], row["secret_key"]))
        assert client.get("/auth/role").status == 200
        reply = importer.login(row["email"], row["password"])
        assert reply.json["data"]["access_key"] == row["access_key"], reply
    keys = json.loads(importer.run("keypair", "ls", "-o", "json").stdout)
    policies = {key["user"]: key["policy"] for key in keys}
    assert policies["ann@one.example"] == "small" and policies["bob@one.example"] == "default"
    wait_for(importer.audited, what="the entry in the audit log")


def test_every_wrong_line_is_told_and_nothing_is_done(importer):
    before = importer.users()
    told = importer.load(
        "email,username,role,projects,policy,domain\n"
        "good@two.example,,,,,\n"
        "r@two.example,,emperor,,,\n"
        "p@two.example,,,nowhere,,\n"
        "good@two.example,,,,,\n"
        "k@two.example,,,,missing,\n"
        "d@two.example,,,,,atlantis\n"
        "u1@two.example,same,,,,\n"
        "u2@two.example,same,,,,\n"
        "no-address,,,,,\n", status=4)
    for words in ("line 3, role: must be superadmin", "line 4, projects: 'nowhere' is no project",
                  "line 5, email: line 2 has", "line 6", "no keypair resource policy 'missing'",
                  "line 7", "no domain 'atlantis'", "line 9, username: line 8 has",
                  "line 10, email: not an e-mail address", "7 of 9 users cannot be imported"):
        assert words in told, (words, told)
    assert "line 2," not in told and importer.users() == before


@pytest.mark.parametrize("text, told", [
    ("", "it is empty"),
    ("email\n", "it has no users"),
    ("name,role\na,b\n", "a column 'email' is missing"),
    ("email,colour\na@b,red\n", "no column 'colour'; columns are email, username"),
    ("email,e-mail\na@b,c@d\n", "are the same column"),
    ("email,name\na@b\n", "line 2: 1 values for 2 columns"),
    ("email,name\na@b,\"open\n", "line 2: a quote is never closed"),
    ("email,name\na@b,o\"pen\n", "line 2: a quote within a value"),
    ("email,name\n\n,Ann\n", "line 3, email: it is empty"),
    ("email,password\na@b,short\n", "line 2, password: must have 8 to 1024 bytes"),
    ("email\na@b\n".encode("utf-16"), "is not UTF-8"),
    (b"email,name\na@b,\xb1\xe8\n", "is not UTF-8"),
    ("email\n" + "".join(f"{i}@b\n" for i in range(2001)), "more than 2000 users"),
    ("email\n" + "a" * (1 << 20), "more than 512 KiB"),
], ids=range(14))
def test_a_file_that_cannot_be_read_is_refused(importer, text, told):
    before = importer.users()
    done = importer.run("import", importer.file(text))
    assert done.returncode == 4, done
    assert told in done.stderr and importer.users() == before, done


def test_a_dry_run_says_what_would_be_done(importer):
    before = importer.users()
    rows = importer.load("email\ndry@three.example\nadmin@lablup.com\n", "--dry-run", "--keys",
                         str(importer.folder / "dry.csv"))
    assert [row["status"] for row in rows][0] == "would-be-created"
    assert not any("secret_key" in row for row in rows)
    assert importer.users() == before and not (importer.folder / "dry.csv").exists()


def test_keys_go_into_a_file_for_the_owner_and_a_second_import_changes_nothing(importer):
    path = importer.folder / "keys.csv"
    table = "email;name\nk1@four.example;One\nk2@four.example;Two\n"
    rows = importer.load(table, "--keys", str(path))
    assert not any("secret_key" in row or "password" in row for row in rows)
    assert path.stat().st_mode & 0o777 == 0o600
    kept = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [row["email"] for row in kept] == ["k1@four.example", "k2@four.example"]
    for row in kept:
        client = Client(importer.cluster.address, (row["access_key"], row["secret_key"]))
        assert client.get("/auth/role").status == 200
    users = importer.users()
    told = importer.load(table, "--keys", str(path), status=7)
    assert "exists; it may hold keys of an earlier import" in told
    again = importer.load(table.replace("Two", "Other"), "--keys", str(importer.folder / "2.csv"))
    assert [row["status"] for row in again] == ["exists", "exists"]
    assert importer.users() == users and not (importer.folder / "2.csv").exists()
    told = importer.load("email,role\nk3@four.example,king\n", "--keys",
                         str(importer.folder / "3.csv"), status=4)
    assert not (importer.folder / "3.csv").exists(), told
    assert importer.run("user", "rm", "k1@four.example").returncode == 0
    assert "restore or purge it" in importer.load(table, status=4)


def test_it_is_for_superadmins_and_bounded(importer):
    admin = importer.cluster.client()
    row = {"user": {"email": "x@five.example", "domain": "default"}}
    assert admin.post(ROUTE, {"users": []}).status == 400
    assert admin.post(ROUTE, {"users": [row] * 2001}).status == 400
    assert admin.post(ROUTE, {"users": [{**row, "access_key": "short"}]}).status == 400
    assert admin.post(ROUTE, {"users": [{"user": {**row["user"], "colour": "red"}}]}).status == 400
    keys = importer.load("email,role\nnot@five.example,admin\n")[0]
    client = Client(importer.cluster.address, (keys["access_key"], keys["secret_key"]))
    assert client.post(ROUTE, {"users": [row]}).status == 401
    assert admin.post(ROUTE, {"users": [{**row, "access_key": keys["access_key"],
                                         "secret_key": "s" * 40}]}).status == 400
    twice = {"access_key": "A" * 20, "secret_key": "s" * 40}
    refused = admin.post(ROUTE, {"users": [
        {"user": {"email": f"{i}@five.example", "domain": "default"}, **twice} for i in (1, 2)]})
    assert [error["field"] for error in refused.json["data"]["errors"]] == ["access_key"], refused
    made = admin.post(ROUTE, {"users": [row]}).json["items"]
    client = Client(importer.cluster.address, (made[0]["access_key"], made[0]["secret_key"]))
    assert client.get("/auth/role").status == 200, "keys that are not given are made"


def test_a_manager_that_is_killed_has_imported_all_or_none(importer):
    table = "email\n" + "".join(f"u{i}@six.example\n" for i in range(60))
    path = importer.folder / "six.csv"
    started = subprocess.Popen([ALIQUOT, "admin", "import", importer.file(table), "--keys",
                                str(path)], env=importer.env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: path.exists() and path.stat().st_size > 0, what="the keys")
    importer.cluster.programs["manager"].kill()
    started.communicate(timeout=120)
    importer.cluster.start_manager()
    there = sum(email.endswith("@six.example") for email in importer.users())
    assert there in (0, 60)
    rows = importer.load(table)
    assert {row["status"] for row in rows} == {"exists" if there else "created"}
    assert sum(email.endswith("@six.example") for email in importer.users()) == 60
    if there:
        kept = list(csv.DictReader(io.StringIO(path.read_text())))
        client = Client(importer.cluster.address, (kept[0]["access_key"], kept[0]["secret_key"]))
        assert client.get("/auth/role").status == 200
