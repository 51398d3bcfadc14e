# SPDX-License-Identifier: Apache-2.0
"""aliquot admin import-backendai and fixture populate: a cluster of Backend.AI moves in."""

import contextlib
import json
import subprocess

import pytest

import backendai_database as old
from client import ADMIN, Client
from cluster import Cluster
from database import sql
from postgres import Server
from world import BUILD

pytestmark = pytest.mark.engines

ALIQUOT = str(BUILD / "aliquot")
ROUTE = "/aliquot/v1/import/backendai"
COUNTS = {  # table: rows, taken, changed, exist, left; in a cluster of --dev
    "domains": (2, 0, 1, 1, 0),
    "keypair_resource_policies": (2, 1, 0, 1, 0),
    "scaling_groups": (2, 0, 1, 1, 0),
    "groups": (2, 1, 0, 1, 0),
    "users": (4, 2, 2, 0, 0),
    "association_groups_users": (3, 3, 0, 0, 0),
    "keypairs": (3, 1, 2, 0, 0),
    "sgroups_for_domains": (2, 1, 0, 1, 0),
    "sgroups_for_groups": (1, 1, 0, 0, 0),
    "sgroups_for_keypairs": (1, 1, 0, 0, 0),
    "resource_presets": (3, 2, 0, 0, 1),
    "image_aliases": (1, 1, 0, 0, 0),
    "images": (1, 0, 0, 0, 1),
    "vfolders": (1, 0, 0, 0, 1),
    "kernels": (500, 0, 0, 0, 500),
    "agents": (2, 0, 0, 0, 2),
    "alembic_version": (1, 0, 0, 0, 1),
}
PARTS = ("rows", "taken", "changed", "exists", "left")


def aliquot(cluster, *words, status=0, stdin=None):
    done = subprocess.run([ALIQUOT, *words], env={**cluster.env, **cluster.cli_env()},
                          capture_output=True, timeout=300, input=stdin)
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == status, f"{words}: {done.returncode}\n{said}"
    return done.stdout.decode() if status == 0 else said


def load(cluster, source, *options):
    return json.loads(aliquot(cluster, "admin", "import-backendai", str(source), "-o", "json",
                              *options))


def counts(report):
    return {row["table"]: tuple(row[part] for part in PARTS) for row in report["tables"]}


def found(report, name):
    """What became of a row."""
    return [(item["status"], item["note"] or "") for item in report["items"]
            if item["name"] == name]


def listed(cluster, kind):
    return json.loads(aliquot(cluster, "admin", kind, "ls", "-o", "json"))


def login(cluster, email, password, domain="labs"):
    return Client(cluster.address, None).send("POST", "/auth/authorize", {
        "type": "keypair", "domain": domain, "username": email, "password": password})


@contextlib.contextmanager
def fresh():
    with Cluster(LC_ALL="C.UTF-8") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.check_audits()


@pytest.fixture(scope="module")
def uri():
    with Server() as server:
        yield old.make(server)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, uri):
    """Dumps of each form."""
    made = tmp_path_factory.mktemp("dumps")
    for name, options in (("copy", ()), ("inserts", ("--inserts",)),
                          ("columns", ("--column-inserts", "--rows-per-insert=2")),
                          ("custom", ("-Fc",)), ("data", ("--data-only",))):
        (made / name).write_bytes(old.dump(uri, *options))
    (made / "all").write_bytes(old.dump_all(uri))
    return made


@pytest.fixture(scope="module")
def moved(folder):
    """A cluster after the import, and what the import said."""
    with fresh() as cluster:
        yield cluster, load(cluster, folder / "copy", "--report", str(folder / "report.json"))


@pytest.mark.gate
def test_what_was_taken_changed_and_left_is_said(moved, folder):
    _, report = moved
    assert counts(report) == COUNTS
    assert json.loads((folder / "report.json").read_text()) == report
    assert (folder / "report.json").stat().st_mode & 0o777 == 0o600
    assert [row["name"] for row in report["vfolders"]] == ["data"]
    for name, status, note in (
            ("labs", "changed", "'cuda.shares' is left out: no agent here has it yet"),
            ("gpu", "changed", "scheduler 'mof' is not known here, and is fifo"),
            ("gpu", "changed", "option 'strange' is left out; option 'config.odd' is left out"),
            ("cee@labs.example", "changed", "needs a new password"),
            ("dee@labs.example", "changed", "has no password"),
            (old.KEYS["bob"][0], "changed", "dotfile '.ssh' is left: '.ssh' is reserved"),
            (old.KEYS["cee"][0], "changed", "its SSH key is left"),
            ("a name of words", "left", "name is 1 to 64 letters")):
        (was, why), = found(report, name)
        assert was == status and note in why, (name, was, why)
    assert old.KEYS["ann"][1] not in json.dumps(report) and old.BCRYPT not in json.dumps(report)


@pytest.mark.gate
def test_everything_is_as_it_was(moved):
    cluster, _ = moved
    domain = {row["name"]: row for row in listed(cluster, "domain")}["labs"]
    assert domain["description"] == 'two\nlines\tand \\ a "backslash"; --'
    assert domain["total_slots"] == {"cpu": "64"}
    users = {row["email"]: row for row in listed(cluster, "user")}
    ann, bob, cee, dee = (users[f"{name}@labs.example"] for name in ("ann", "bob", "cee", "dee"))
    assert ann["id"] == old.ANN and ann["full_name"] == "Ann's 이름" and ann["projects"] == ["lasers"]
    assert [row["role"] for row in (ann, bob, cee, dee)] == ["user", "admin", "user", "user"]
    assert [row["status"] for row in (ann, bob, cee, dee)] == [
        "active", "active", "inactive", "before-verification"]
    assert cee["username"] == "cee@labs.example" and dee["full_name"] == "D\\N"
    keys = {row["access_key"]: row for row in listed(cluster, "keypair")}
    assert keys[old.KEYS["ann"][0]]["policy"] == "students"
    assert not keys[old.KEYS["cee"][0]]["is_active"]
    policy = {row["name"]: row for row in listed(cluster, "policy")}["students"]
    assert policy["total_slots"] == {"cpu": "4", "mem": "17179869184"}
    assert (policy["max_session_lifetime_sec"], policy["idle_timeout_sec"]) == (86400, 0)
    group = {row["name"]: row for row in listed(cluster, "resource-group")}["gpu"]
    assert group["scheduler"] == "fifo" and group["selection"] == "round-robin", group
    ann = cluster.client(old.KEYS["ann"])
    assert ann.get("/user-config/bootstrap-script").json == "#!/bin/sh\necho hi; # it's\n"
    assert ann.get("/user-config/dotfiles").json == [
        {"path": ".vimrc", "permission": "644", "data": "set nu\n\ttab \\ back\n"}]
    assert {row["name"] for row in ann.get("/scaling-groups?group=lasers").json["scaling_groups"]
            } == {"default", "gpu"}
    presets = {row["name"]: row for row in ann.get("/resource/presets").json["presets"]}
    assert presets["shared"]["shared_memory"] in (67108864, "67108864"), presets
    assert ann.get("/aliquot/v1/image-aliases").json["items"] == [
        {"alias": "python39", "image": "cr.example/stable/python:3.9-ubuntu20.04"}]


@pytest.mark.gate
def test_people_sign_with_their_keys_and_log_in_with_their_passwords(moved):
    cluster, _ = moved
    for name in "ann", "bob":
        assert cluster.client(old.KEYS[name]).get("/auth/role").status == 200
    assert cluster.client(old.KEYS["cee"]).get("/auth/role").status == 401, "is not active"
    assert login(cluster, "ann@labs.example", "wrong horse").status == 401
    for email, password in (("ann@labs.example", "correct horse"),
                            ("bob@labs.example", "battery staple")):
        for _ in range(2):
            reply = login(cluster, email, password)
            assert reply.status == 200, reply
            assert reply.json["data"]["access_key"] in (old.KEYS["ann"][0], old.KEYS["bob"][0])
    assert login(cluster, "cee@labs.example", "anything at all").status == 401


def test_a_hash_of_backendai_becomes_ours_at_the_first_login(folder):
    with Cluster() as cluster:
        cluster.start_manager()
        load(cluster, folder / "copy")
        assert login(cluster, "bob@labs.example", "battery staple").status == 200
        assert login(cluster, "ann@labs.example", "wrong").status == 401
        cluster.programs["manager"].stop()
        count = "SELECT COUNT(*) FROM users WHERE email = '%s' AND password_hash LIKE '%s'"
        assert sql(cluster, count % ("bob@labs.example", "$argon2id$%")) == 1
        assert sql(cluster, count % ("ann@labs.example", "$2b$%")) == 1
        cluster.start_manager()
        assert login(cluster, "bob@labs.example", "battery staple").status == 200


def bare(report):
    """Without what tells where a row was."""
    for item in report["items"]:
        del item["line"]
    for row in report["vfolders"] + report["images"]:
        del row["line"]
    for key in "tables", "items":
        report[key].sort(key=json.dumps)
    return report


@pytest.mark.parametrize("form", ("inserts", "columns", "data", "all", "server", "stdin"))
def test_every_source_gives_the_same(moved, folder, uri, form):
    with fresh() as cluster:
        if form == "stdin":
            said = json.loads(aliquot(cluster, "admin", "import-backendai", "-", "-o", "json",
                                      stdin=(folder / "copy").read_bytes()))
        else:
            said = load(cluster, uri if form == "server" else folder / form)
        assert bare(said) == bare(json.loads(json.dumps(moved[1])))
        assert login(cluster, "ann@labs.example", "correct horse").status == 200
        assert cluster.client(old.KEYS["ann"]).get("/user-config/dotfiles").json


def test_a_dry_run_changes_nothing_and_a_second_import_neither(folder):
    with fresh() as cluster:
        before = [listed(cluster, kind) for kind in ("user", "keypair", "domain", "policy")]
        said = load(cluster, folder / "copy", "--dry-run")
        assert said.pop("dry_run") is True and counts(said) == COUNTS
        assert [listed(cluster, kind) for kind in ("user", "keypair", "domain", "policy")] == before
        assert load(cluster, folder / "copy")["items"] == said["items"]
        after = [listed(cluster, kind) for kind in ("user", "keypair", "domain", "policy")]
        again = counts(load(cluster, folder / "copy"))
        for table, (rows, taken, changed, _, left) in COUNTS.items():
            assert again[table] == (rows, 0, 0, taken + changed + COUNTS[table][3], left), table
        assert [listed(cluster, kind) for kind in ("user", "keypair", "domain", "policy")] == after
        log = "/aliquot/v1/audit-log?limit=1000&action="
        (entry,) = cluster.client().get(log + "import-backendai").json["items"]
        assert entry["user"] == "admin@lablup.com" and entry["detail"]["after"]["presets"] == 2
        made = cluster.client().get(log + "create-keypair").json["items"]
        assert len(made) == 3 and old.KEYS["ann"][1] not in str(made), made
        aliquot(cluster, "admin", "user", "rm", "ann@labs.example")
        (status, note), = found(load(cluster, folder / "copy"), "ann@labs.example")
        assert status == "exists" and "taken out of use here, and stays so" in note
        text = aliquot(cluster, "admin", "import-backendai", str(folder / "copy"), "--dry-run")
        assert "TABLE" in text and "association_groups_users" in text


@pytest.fixture(scope="module")
def empty():
    with fresh() as cluster:
        yield cluster


def refused(cluster, path, status=4):
    before = listed(cluster, "user"), listed(cluster, "domain")
    said = aliquot(cluster, "admin", "import-backendai", str(path), status=status)
    assert (listed(cluster, "user"), listed(cluster, "domain")) == before
    return said


def test_what_is_no_whole_dump_is_refused(empty, folder, tmp_path):
    text = (folder / "copy").read_text()
    at = text.index("COPY public.users")
    bad = tmp_path / "bad.sql"
    for content, told in (
            ("", "it has no table 'domains'"),
            (text[:at + 300], "it ends among the rows of 'users': it was cut short"),
            (text[:at + 20], "it ends within a statement"),
            (text[:text.index("ALTER TABLE ONLY")], "without pg_dump's last words"),
            (text.replace("COPY public.keypairs", "COPY public.others"),
             "it has no table 'keypairs'"),
            (text.replace(", email,", ", mail,"), "table 'users' has no column 'email'"),
            (text.replace("\tann@labs.example\t", "\t", 1), "does not have 14 columns"),
            ("garbage and more\n" * 6_000_000, "it ends within a statement"),
            ("x" * 100_000_000, "it ends within a statement")):
        bad.write_text(content)
        assert told in refused(empty, bad), told
    bad.write_bytes(text.encode("utf-16"))
    assert "NUL byte" in refused(empty, bad)
    bad.write_bytes(text.encode().replace("이름".encode(), b"\xb1\xe8"))
    assert "column 'full_name' is not UTF-8" in refused(empty, bad)
    bad.write_text("COPY public.domains (name) FROM stdin;\n" + "d" * 5_000_000 + "\n")
    assert "a row of 'domains' has more than 4 MiB" in refused(empty, bad)
    assert "pg_restore -f" in refused(empty, folder / "custom")
    assert "cannot be read" in refused(empty, tmp_path / "missing.sql", status=5)


def test_rows_that_cannot_be_are_named_with_their_lines(empty, folder, tmp_path):
    lines = (folder / "copy").read_text().splitlines(keepends=True)

    def line_of(beginning):
        return next(i for i, line in enumerate(lines) if line.startswith(beginning))

    ann, bob = line_of(old.ANN + "\tann\t"), line_of(old.BOB + "\tbob\t")
    key = line_of("ann@labs.example\tAKIA")
    twice = list(lines)
    twice[bob] = lines[bob].replace("bob@labs.example", "ann@labs.example").replace("admin", "king")
    twice[key] = lines[key].replace(old.ANN, old.LAB)
    bad = tmp_path / "bad.sql"
    bad.write_text("".join(twice))
    said = refused(empty, bad)
    assert f"table 'users', line {bob + 1}, email: line {ann + 1} says the same" in said, said
    assert f"table 'keypairs', line {key + 1}, user: there is no user {old.LAB}" in said
    assert "rows cannot be imported; nothing is changed" in said
    named = list(lines)
    named[ann] = lines[ann].replace("\tann\t", "\tadmin\t")
    bad.write_text("".join(named))
    assert f"line {ann + 1}, username: 'admin' is the name of admin@lablup.com here" in refused(
        empty, bad)
    taken = [line.replace(old.KEYS["ann"][0], ADMIN[0]) for line in lines]
    bad.write_text("".join(taken))
    assert "access_key: is another user's here" in refused(empty, bad)


def test_a_server_that_is_not_there_or_no_backendai(empty, uri):
    assert "could not be read" in refused(empty, uri.replace("user=aliquot", "user=nobody"), 1)
    assert "it has no table 'domains'" in refused(empty, uri.replace("/backend?", "/postgres?"))


FIXTURE = {
    "__mode": "INSERT", "endpoints": [{"id": 1}],
    "domains": [{"name": "guests", "description": "", "is_active": True,
                 "total_resource_slots": {}, "allowed_vfolder_hosts": {}}],
    "groups": [{"id": old.LAB, "name": "default", "description": None, "is_active": True,
                "domain_name": "guests", "total_resource_slots": {}}],
    "users": [
        {"uuid": old.ANN, "username": "gast", "email": "gast@guests.example", "password": "plain words",
         "need_password_change": False, "full_name": "Gast", "status": "ACTIVE",
         "domain_name": "guests", "role": "USER"},
        {"uuid": old.BOB, "username": "hash", "email": "hash@guests.example",
         "password": old.BCRYPT, "domain_name": "guests", "role": "user", "status": "active"}],
    "association_groups_users": [{"group_id": old.LAB, "user_id": old.ANN}],
    "keypair_resource_policies": [
        {"name": "guests", "default_for_unspecified": "UNLIMITED", "total_resource_slots": {},
         "max_session_lifetime": 0, "max_concurrent_sessions": 2, "max_containers_per_session": 1,
         "idle_timeout": 3600}],
    "keypairs": [
        {"user_id": "gast@guests.example", "access_key": old.KEYS["ann"][0],
         "secret_key": old.KEYS["ann"][1], "is_active": True, "is_admin": False,
         "resource_policy": "guests", "rate_limit": 30000, "num_queries": 0, "user": old.ANN,
         "dotfiles": r"\x90", "bootstrap_script": ""},
        {"user_id": "hash@guests.example", "access_key": old.KEYS["bob"][0],
         "secret_key": old.KEYS["bob"][1], "resource_policy": "guests", "user": old.BOB}],
    "resource_presets": [{"name": "cpu01", "resource_slots": {"cpu": "1", "mem": "1g"}}],
}


def test_a_fixture_is_populated_by_either_name(tmp_path):
    path = tmp_path / "fixture.json"
    path.write_text(json.dumps(FIXTURE))
    with fresh() as cluster:
        dry = aliquot(cluster, "admin", "fixture", "populate", str(path), "--dry-run")
        assert "endpoints" in dry and "Aliquot does not know this table" in dry
        assert "guests" not in json.dumps(listed(cluster, "domain"))
        said = json.loads(aliquot(cluster, "mgr", "fixture", "populate", str(path), "-o", "json"))
        assert counts(said)["users"] == (2, 2, 0, 0, 0) and counts(said)["endpoints"][4] == 1
        assert cluster.client(old.KEYS["ann"]).get("/auth/role").status == 200
        assert login(cluster, "gast@guests.example", "plain words", "guests").status == 200
        assert login(cluster, "hash@guests.example", "correct horse", "guests").status == 200
        more = {"association_groups_users": [{"group_id": old.LAB, "user_id": user}
                                             for user in (old.ANN, old.BOB)]}
        path.write_text(json.dumps(more))
        said = json.loads(aliquot(cluster, "admin", "fixture", "populate", str(path), "-o", "json"))
        assert counts(said)["association_groups_users"] == (2, 1, 0, 1, 0)
        users = {row["email"]: row["projects"] for row in listed(cluster, "user")}
        assert users["hash@guests.example"] == ["default"]


@pytest.mark.parametrize("content, told", (
    ("[]", "it is no object of tables"),
    ("{", "is not JSON: line 1"),
    ('{"users": {}}', "table 'users' is no list of rows"),
    ('{"users": [1]}', "row 1 is no object"),
    ('{"users": [{"uuid": "x", "username": "y"}]}', "table 'users' has no column 'email'"),
    ('{"users": [{"uuid": "x", "email": "a@b", "need_password_change": "perhaps"}]}',
     "column 'need_password_change' has a value that it cannot have"),
    ('{"domains": [{"name": "d", "dotfiles": "\\\\x91"}]}', "not a list of path, perm and data"),
    ('{"users": [{"uuid": "x", "email": "a@b"}]}', "table 'users', row 1, uuid: is no UUID"),
    ('{"domains": [{"name": "%s"}]}' % ("d" * 65), "domains"),
))
def test_a_bad_fixture_is_refused(empty, tmp_path, content, told):
    path = tmp_path / "bad.json"
    path.write_text(content)
    before = listed(empty, "user"), listed(empty, "domain")
    assert told in aliquot(empty, "admin", "fixture", "populate", str(path), status=4)
    assert (listed(empty, "user"), listed(empty, "domain")) == before


def test_the_route_is_for_superadmins_and_takes_no_other_columns(empty):
    admin = empty.client()
    for body in ({}, {"tables": []}, {"tables": {"x": []}}, {"tables": {"users": {}}},
                 {"tables": {"users": [1]}}, {"tables": {"users": [{"uuid": 1}]}},
                 {"tables": {"users": [{"uuid": old.ANN, "email": "a@b", "colour": "red"}]}},
                 {"tables": {"domains": [{"name": "n", "dotfiles": {}}]}}):
        assert admin.post(ROUTE, body).status == 400, body
    user = empty.client(("AKIANABBDUSEREXAMPLE", "C8qnIo29EZvXkPK_MXcuAakYTy4NYrxwmCEyNPlf"))
    assert user.post(ROUTE, {"tables": {}}).status in (401, 403)
    assert admin.post(ROUTE, {"tables": {}}).json == {"dry_run": False, "tables": [], "items": []}


def test_a_manager_that_is_killed_has_taken_all_or_nothing(folder):
    with Cluster() as cluster:
        cluster.start_manager()
        started = subprocess.Popen([ALIQUOT, "admin", "import-backendai", str(folder / "copy")],
                                   env={**cluster.env, **cluster.cli_env()},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        cluster.programs["manager"].kill()
        started.communicate(timeout=120)
        cluster.start_manager()
        there = {row["email"] for row in listed(cluster, "user")} & {"ann@labs.example"}
        keys = {row["access_key"] for row in listed(cluster, "keypair")} & {old.KEYS["ann"][0]}
        assert bool(there) == bool(keys)
        load(cluster, folder / "copy")
        assert cluster.client(old.KEYS["ann"]).get("/auth/role").status == 200
