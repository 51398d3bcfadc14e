# SPDX-License-Identifier: Apache-2.0
"""A domain that is renamed keeps its users, sessions, usage, limits, files and rules."""

import contextlib
import itertools
import json
import sqlite3
import subprocess
import threading
import time
import urllib.parse

import pytest

from client import Client, sse_messages
from cluster import Cluster, batch, interactive, wait_for, wait_status

V1 = "/aliquot/v1"
PASSWORD = "S0me-words-long"
numbers = itertools.count(1)
# each column that has the name of a domain
COLUMNS = (("projects", "domain"), ("users", "domain"), ("sessions", "domain"),
           ("session_templates", "domain"), ("removed_usage", "domain"),
           ("session_totals", "domain"), ("audit_log", "domain"), ("audit_log", "object_domain"),
           ("resource_group_access WHERE kind = 'domain'", "whom"),
           ("dotfiles WHERE kind = 'domain'", "owner"))

# what was done under a name stays as it was said
SAID = (("audit_log", "object_id"), ("audit_log", "object_name"), ("audit_log", "detail"))


@pytest.fixture(scope="module", name="own")
def own_fixture():
    with Cluster() as made:
        made.start_manager()
        made.start_agent()
        assert made.client().send("PATCH", V1 + "/resource-groups/default",
                                  {"scheduler": "fair-share"}).status == 200
        yield made
        made.check_audits()
        made.stop()


@pytest.fixture(name="boss")
def boss_fixture(own):
    return own.client()


def ok(reply):
    assert 200 <= reply.status < 300, reply
    return reply.json if reply.body else None


class Domain:
    """A domain with a project, a user and an administrator."""

    def __init__(self, boss, **more):
        number = next(numbers)
        self.boss = boss
        self.name = f"old{number}"
        ok(boss.post(V1 + "/domains", {"name": self.name, **more}))
        ok(boss.post(V1 + "/resource-groups/default/allow", {"domain": self.name}))
        self.project = ok(boss.post(V1 + "/groups", {"name": "lab", "domain": self.name}))["id"]
        self.email, self.user, self.client = self.add_user(f"ann{number}", "user")
        _, _, self.admin = self.add_user(f"amy{number}", "admin")

    def add_user(self, name, role):
        email = name + "@lablup.com"
        user = ok(self.boss.post(V1 + "/users", {
            "email": email, "domain": self.name, "role": role, "password": PASSWORD,
            "groups": [self.project]}))["id"]
        key = ok(self.boss.post(V1 + "/keypairs", {"user": email, "rate_limit": 0}))
        return email, user, Client(self.boss.address, (key["access_key"], key["secret_key"]))

    def start(self, name, **more):
        return ok(self.client.post("/session", {**interactive(name), "group": "lab",
                                                "domain": self.name, **more}))["sessionId"]

    @property
    def path(self):
        return f"{V1}/domains/{urllib.parse.quote(self.name)}"

    def rename(self, to, **more):
        reply = self.boss.send("PATCH", self.path, {"name": to, **more})
        if reply.status == 200:
            self.name = to
        return reply


@pytest.fixture(name="domain")
def domain_fixture(boss):
    return Domain(boss)


def domain_names(client):
    return [row["name"] for row in ok(client.get(V1 + "/domains?all=true&limit=1000"))["items"]]


def shares(client):
    return {row["domain"]: row for row in
            ok(client.get(V1 + "/resource-groups/default/fair-share"))["items"]
            if row["level"] == "domain"}


def hosts_of(client, name):
    reply = ok(client.gql(f'{{domain(name: "{name}") {{allowed_vfolder_hosts}}}}'))
    return json.loads(reply["data"]["domain"]["allowed_vfolder_hosts"])


def login(client, domain):
    return Client(client.address, None).post("/auth/authorize", {
        "type": "keypair", "domain": domain.name, "username": domain.email,
        "password": PASSWORD}).status


def dotfiles(domain):
    where = "?domain=" + urllib.parse.quote(domain.name)
    return ok(domain.client.get("/domain-config/dotfiles" + where))


def query(own, text):
    """Rows of the manager's database, as texts where it is on a server."""
    server = own.env.get("ALIQUOT_MANAGER_DATABASE")
    if server:
        done = subprocess.run(["psql", "-qAtX", "-F", "\t", server, "-c", text], check=True,
                              capture_output=True, text=True)
        return [tuple(line.split("\t")) for line in done.stdout.splitlines()]
    path = next((own.folder / "manager").glob("*.db"))
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(text).fetchall()


def columns(own):
    if own.env.get("ALIQUOT_MANAGER_DATABASE"):
        return query(own, "SELECT table_name, column_name FROM information_schema.columns"
                          " WHERE table_schema = 'public' AND table_name NOT LIKE 'present%'")
    return [(table, column[1])
            for table, in query(own, "SELECT name FROM sqlite_master WHERE type = 'table'")
            for column in query(own, f"PRAGMA table_info({table})")]


def holders(own, name):
    """Columns of the database with this name in them, but for what the audit log says was done."""
    find = "strpos" if own.env.get("ALIQUOT_MANAGER_DATABASE") else "instr"
    asked = [f"SELECT '{table}.{column}' WHERE EXISTS (SELECT 1 FROM {table} WHERE"
             f" {find}(CAST({column} AS TEXT), '{name}') > 0)"
             for table, column in columns(own) if (table, column) not in SAID]
    return [row[0] for i in range(0, len(asked), 400)  # SQLite takes 500 at once
            for row in query(own, " UNION ALL ".join(asked[i:i + 400]))]


def strangers(own):
    """Rows of the database that name a domain that is not there."""
    return query(own, " UNION ALL ".join(
        f"SELECT '{table.split()[0]}', {column} FROM (SELECT {column} FROM {table}) rows"
        f" WHERE {column} NOT IN (SELECT name FROM domains)" for table, column in COLUMNS))


def check_all(domain, boss, running, waiting):
    """What a domain has is found under its name, whatever that is."""
    shown = ok(domain.client.get(f"{V1}/sessions/{running}"))
    assert (shown["status"], shown["domain"]) == ("RUNNING", domain.name)
    shown = wait_status(domain.client, waiting, "PENDING")
    assert shown["domain"] == domain.name
    why = f"{V1}/sessions/{waiting}/why"
    wait_for(lambda: f"The limit of domain {domain.name} is exceeded" in domain.client.get(
        why).body.decode(), 30, lambda: domain.client.get(why))
    assert {row["domain"] for row in ok(domain.admin.get(V1 + "/sessions?all=true"))["items"]} == {
        domain.name}
    users = {row["email"]: row for row in ok(boss.get(V1 + "/users?limit=1000"))["items"]}
    assert users[domain.email]["domain"] == domain.name
    projects = {row["id"]: row for row in ok(boss.get(V1 + "/groups?limit=1000"))["items"]}
    assert projects[domain.project]["domain"] == domain.name
    assert [row["name"] for row in ok(domain.admin.get(V1 + "/domains"))["items"]] == [domain.name]
    assert [file["path"] for file in dotfiles(domain)] == [".bashrc"]
    assert hosts_of(boss, domain.name) == {"other:volume": ["mount-in-session"]}
    assert login(boss, domain) == 200
    template, = ok(domain.admin.get("/template/session?all=true"))
    assert template["domain_name"] == domain.name
    share = shares(boss)[domain.name]
    assert share["weight"] == 3 and share["usage"] > 0, share
    assert ok(domain.client.post(V1 + "/sessions/_/dry-run", {**interactive("dry"), "group": "lab"}))


def test_all_that_a_domain_has(own, boss):
    domain = Domain(boss, total_slots={"cpu": "1"})
    before = domain.name
    ok(boss.send("PATCH", V1 + "/resource-groups/default",
                 {"fair_share": {f"domain:{before}": 3, "half_life_days": 5}}))
    ok(boss.post("/domain-config/dotfiles", {"domain": before, "path": ".bashrc",
                                             "permission": "644", "data": "x"}))
    ok(boss.gql('mutation($name: String!, $props: ModifyDomainInput!)'
                '{modify_domain(name: $name, props: $props) {ok msg}}',
                {"name": before,
                 "props": {"allowed_vfolder_hosts": '{"other:volume": ["mount-in-session"]}'}}))
    ok(domain.client.post("/template/session", {
        "payload": "api_version: v1\nkind: taskTemplate\nmetadata: {name: one}\n"
                   "spec: {kernel: {image: sh}}\n"}))
    ended = ok(domain.client.post("/session", {**batch("ended", "true"), "group": "lab"}))
    wait_status(domain.client, ended["sessionId"], "TERMINATED")
    running = domain.start("running")
    wait_status(domain.client, running, "RUNNING")
    waiting = domain.start("waiting")
    wait_for(lambda: shares(boss)[before]["usage"] > 0, 30, "usage")
    check_all(domain, boss, running, waiting)

    done = ok(domain.rename("new " + before[3:], description="Renamed"))
    assert (done["name"], done["description"]) == ("new " + before[3:], "Renamed")
    assert before not in domain_names(boss) and domain.name in domain_names(boss)
    check_all(domain, boss, running, waiting)
    assert holders(own, before) == []
    assert strangers(own) == []
    own.check_audits()

    entry = ok(domain.admin.get(V1 + "/audit-log?action=modify-domain"))["items"][0]
    assert (entry["object_name"], entry["detail"]) == (domain.name, {
        "before": {"name": before, "description": None},
        "after": {"name": domain.name, "description": "Renamed"}})
    assert ok(domain.admin.get(V1 + "/audit-log?action=create-session"))["total"] == 3

    # the limit of the domain counts what runs, and a higher one lets the other session run
    ok(boss.send("PATCH", domain.path, {"total_slots": {"cpu": "2"}}))
    wait_status(domain.client, waiting, "RUNNING")
    third = domain.start("third")
    own.programs["manager"].kill()
    own.programs["manager"].start()
    wait_for(own.is_serving, 60, "the manager")
    wait_for(lambda: own.agent().get("connected"), 60, "the agent")
    wait_for(lambda: domain.name in shares(boss), 30, "the shares")
    check_all(domain, boss, running, third)
    assert strangers(own) == []

    # another domain may have the old name, and has nothing of what was under it
    ok(boss.post(V1 + "/domains", {"name": before}))
    assert ok(boss.get(f"/domain-config/dotfiles?domain={before}")) == []
    assert before not in shares(boss)
    for session in running, waiting, third:
        ok(domain.client.delete(f"/session/{session}"))
        wait_status(domain.client, session, "TERMINATED", "CANCELLED")
    own.check_audits()


def test_there_and_back(own, boss, domain):
    """A name that is free again may be taken again, with what a domain has under either."""
    first, second = domain.name, domain.name + "-b"
    running = domain.start("running")
    wait_status(domain.client, running, "RUNNING")
    for name in (second, first, second, first):
        ok(domain.rename(name))
        assert ok(domain.client.get(f"{V1}/sessions/{running}"))["domain"] == name
        own.check_audits()
    ok(domain.client.delete(f"/session/{running}"))
    wait_status(domain.client, running, "TERMINATED", "CANCELLED")


def test_the_same_name_is_no_change(boss, domain):
    seen = ok(boss.get(V1 + "/audit-log?action=modify-domain&limit=1"))["total"]
    assert ok(domain.rename(domain.name))["name"] == domain.name
    assert ok(boss.get(V1 + "/audit-log?action=modify-domain&limit=1"))["total"] == seen


def test_graphql(boss, domain):
    query = ("mutation($name: String!, $props: ModifyDomainInput!)"
             "{modify_domain(name: $name, props: $props) {ok msg domain {name description}}}")
    old, new = domain.name, domain.name + "-gql"
    done = ok(boss.gql(query, {"name": old, "props": {
        "name": new, "description": "d", "allowed_vfolder_hosts": '{"a:b": ["modify-vfolder"]}'}}))
    assert done["data"]["modify_domain"] == {
        "ok": True, "msg": "success", "domain": {"name": new, "description": "d"}}
    assert hosts_of(boss, new) == {"a:b": ["modify-vfolder"]}
    done = ok(boss.gql(query, {"name": new, "props": {"name": "default"}}))["data"]["modify_domain"]
    assert not done["ok"] and "name: a domain 'default' exists already" in done["msg"], done
    done = ok(boss.gql(query, {"name": "default", "props": {"name": "x"}}))["data"]["modify_domain"]
    assert not done["ok"] and "cannot be renamed" in done["msg"], done


def test_command_line(own, boss, domain):
    done = own.cli("admin", "domain", "set", domain.name, "--name", domain.name + "-cli")
    assert done.returncode == 0 and domain.name + "-cli" in done.stdout, done
    done = own.cli("admin", "domain", "set", "default", "--name", "x")
    assert done.returncode != 0 and "cannot be renamed" in done.stderr, done
    assert domain.name + "-cli" in domain_names(boss)


def test_refusals(boss, domain):
    purged = Domain(boss)
    other = Domain(boss)
    for user in ok(boss.get(V1 + "/users?limit=1000"))["items"]:
        if user["domain"] == purged.name:
            ok(boss.delete(f"{V1}/users/{user['id']}?purge=true"))
    ok(boss.delete(f"{V1}/domains/{purged.name}?purge=true"))
    for name, status, words in (
            (other.name, 400, "exists already"), (purged.name, 400, "still on record"),
            ("", 400, "name"), ("x" * 65, 400, "name"), ("a\nb", 400, "name")):
        reply = domain.rename(name)
        assert reply.status == status and words in reply.body.decode(), (name, reply)
    reply = boss.send("PATCH", V1 + "/domains/default", {"name": "x"})
    assert reply.status == 400 and "create another domain" in reply.json["data"]["name"], reply
    assert boss.send("PATCH", V1 + "/domains/nowhere", {"name": "x"}).status == 404
    for client in (domain.admin, domain.client):
        assert client.send("PATCH", domain.path, {"name": "x"}).status in (401, 403)
    ok(boss.delete(f"{V1}/domains/{other.name}"))
    assert "out of use" in domain.rename(other.name).body.decode()
    assert domain.name in domain_names(boss) and "x" not in domain_names(boss)


def test_domain_of_signup():
    with Cluster(ALIQUOT_SIGNUP_ENABLED="true", ALIQUOT_SIGNUP_DOMAIN="guests") as made:
        made.start_manager()
        boss = made.client()
        ok(boss.post(V1 + "/domains", {"name": "guests"}))
        reply = boss.send("PATCH", V1 + "/domains/guests", {"name": "visitors"})
        assert reply.status == 400 and "[signup]" in reply.json["data"]["name"], reply
        made.stop()


def test_events_of_a_renamed_domain(boss, domain):
    """A stream of all sessions of a domain ends, and the next one has what came meanwhile."""
    path = "/events/session?ownerAccessKey=*"
    _, file, head = domain.admin.stream(path)
    assert " 200 " in head
    stream = sse_messages(file)
    first = domain.start("before", **{"config": {"resources": {"cpu": "1000", "mem": "64m"}},
                                      "wait_for_capacity": True})
    _, event, last = next(stream)
    assert event["sessionId"] == first
    ok(domain.rename(domain.name + "-new"))
    ok(boss.post(V1 + "/domains", {"name": domain.name[:-4]}))  # whose events are not theirs
    second = domain.start("after", **{"config": {"resources": {"cpu": "1000", "mem": "64m"}},
                                      "wait_for_capacity": True})
    assert [each for each in stream if each[0] == "server_close"
            or each[1].get("sessionId") == second] == []
    _, file, _ = domain.admin.stream(path, {"Last-Event-ID": last})
    assert any(event.get("sessionId") == second for _, event, _ in sse_messages(file))
    for session in first, second:
        ok(domain.client.delete(f"/session/{session}"))


@pytest.mark.parametrize("kind", ["list", "gql", "usage"])
def test_requests_that_wait_see_no_other_domain(boss, domain, kind):
    """One of a user runs at a time. Another domain has the name when the turn of the others comes."""
    other = Domain(boss)
    for number in range(20):
        ok(other.client.post("/session", {**batch(f"other{number}", "true"), "group": "lab",
                                          "config": {"resources": {"cpu": "1000", "mem": "64m"}},
                                          "wait_for_capacity": True}))
        ok(domain.client.post("/session", {**batch(f"own{number}", "true"), "group": "lab",
                                           "config": {"resources": {"cpu": "1000", "mem": "64m"}},
                                           "wait_for_capacity": True}))
    asks = {"list": lambda: domain.admin.get(V1 + "/sessions?all=true&limit=1000"),
            "gql": lambda: domain.admin.gql("{compute_session_list(limit: 100, offset: 0)"
                                            "{items {name created_user_email}}}"),
            "usage": lambda: domain.admin.get(V1 + "/usage?by=project")}
    name, others, replies = domain.name, other.name, []

    def ask():
        for _ in range(3):
            replies.append(asks[kind]())

    for number in range(30):
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(replies) > 48 * number, 30, "a reply")
        for each, to in ((domain, f"{name}-{number}"), (other, name)):
            assert each.rename(to).status == 200
        for thread in threads:
            thread.join()
        for each, to in ((other, others), (domain, name)):
            assert each.rename(to).status == 200
        assert {reply.status for reply in replies} <= {200, 409}, replies
        foreign = [reply for reply in replies
                   if b"other0" in reply.body or other.project.encode() in reply.body]
        assert not foreign, foreign[0]
        if any(reply.status == 409 for reply in replies):
            break
    else:
        pytest.fail("no request waited while the domain was renamed")


def test_writers_during_renames(own, boss, domain):
    """None leaves a row with a name that the domain no longer has."""
    names, over = [domain.name, domain.name + "-b"], threading.Event()
    replies = {}

    def ask(send):
        reply = send()
        replies.setdefault((threading.current_thread().name, reply.status), reply)

    def session(number, name):
        ask(lambda: domain.client.post("/session", {
            **batch(f"s{number}", "true"), "group": "lab", "domain": name,
            "config": {"resources": {"cpu": "1000", "mem": "64m"}}, "wait_for_capacity": True}))

    def project(number, name):
        ask(lambda: boss.post(V1 + "/groups", {"name": f"p{number}", "domain": name}))

    def user(number, name):
        ask(lambda: boss.post(V1 + "/users", {"email": f"{domain.user[:8]}-{number}@lablup.com",
                                              "domain": name, "password": PASSWORD}))

    def change_user(number, _):
        ask(lambda: boss.send("PATCH", f"{V1}/users/{domain.user}", {"full_name": f"Ann {number}"}))

    def dotfile(number, name):
        ask(lambda: boss.post("/domain-config/dotfiles", {
            "domain": name, "path": f"f{number % 50}", "permission": "644", "data": "x"}))

    def grant(_, name):
        ask(lambda: boss.post(V1 + "/resource-groups/default/allow", {"domain": name}))

    def template(number, _):
        ask(lambda: domain.client.post("/template/session", {
            "payload": f"api_version: v1\nkind: taskTemplate\nmetadata: {{name: t{number}}}\n"
                       "spec: {kernel: {image: sh}}\n"}))

    def rules(number, name):
        ask(lambda: boss.gql(
            "mutation($name: String!, $props: ModifyDomainInput!)"
            "{modify_domain(name: $name, props: $props) {ok msg}}",
            {"name": name, "props": {"allowed_vfolder_hosts": f'{{"h:{number}": ["clone"]}}'}}))

    def write(what):
        for number in range(2000):
            if over.is_set():
                return
            what(number, names[number // 2 % 2])

    threads = [threading.Thread(target=write, args=(what,), name=what.__name__)
               for what in (session, project, user, change_user, dotfile, grant, template, rules)]
    for thread in threads:
        thread.start()
    renamed = 0
    until = time.monotonic() + 300
    while renamed < 20 and time.monotonic() < until:
        reply = domain.rename(names[domain.name == names[0]])
        assert reply.status in (200, 409), reply
        renamed += reply.status == 200
    over.set()
    for thread in threads:
        thread.join()
    assert renamed == 20
    assert {status for _, status in replies} <= {200, 201, 204, 400, 404, 409}, replies
    assert ("session", 404) not in replies, replies["session", 404]
    assert {kind for kind, status in replies if status < 300} == {
        thread.name for thread in threads}, replies
    assert strangers(own) == []
    own.check_audits()
    (rules,), = query(own, "SELECT value FROM settings WHERE key = 'folders.rules'")
    other = names[domain.name == names[0]]
    assert f"domain/{other}" not in json.loads(rules), rules
