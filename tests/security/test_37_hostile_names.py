# SPDX-License-Identifier: Apache-2.0
"""Names that others have chosen are text for shells, spreadsheets and terminals, and nothing else."""

import csv
import io
import json
import re
import shlex
import urllib.parse

import pytest

from client import ADMIN
from cluster import WAITS, Cluster
from terminal import Terminal
from web import EMAIL
from world import BUILD

V1 = "/aliquot/v1"
# what is typed before TAB, and the name that the command must get; {file} is what must not appear
NAMES = {
    "semicolon": "train;touch${IFS}{file}",
    "substitution": "sub$(touch${IFS}{file})",
    "backquotes": "tick`touch {file}`",
    "pipe": "pipe|touch {file}",
    "background": "amp&touch {file}",
    "redirection": "redir>{file}",
    "blanks": "two  words",
    "quotes": "it's \"so\" here",
    "backslash": "back\\slash\\\\;x",
    "history": "bang!!;x",
    "colon": "team:a;touch {file}",
    "equals": "key=a;touch {file}",
    "at": "who@a;touch {file}",
    "glob": "star*?[a]{b,c}",
    "tilde": "~root",
    "hash": "#note",
    "umlaut": "größe;touch {file}",
}
# beginnings, each up to where the names differ
TYPED = {
    "semicolon": ("tr", "train\\;to", "'train;to", '"train;to', "'tr", '"tr', "tr'ain;to", "t\\rain"),
    "substitution": ("su", "'sub$(to", '"sub\\$(to'),
    "backquotes": ("ti", "'ti", '"ti'),
    "pipe": ("pi", "'pi", '"pi'), "background": ("am", "'am", '"am'),
    "redirection": ("re", "redir\\>", "'re", '"re'),
    "blanks": ("tw", "two\\ ", "'two ", '"two ', "two' '"),
    "quotes": ("it", "it\\'", '"it\'s', "'it"),
    "backslash": ("bac", "back\\\\", "'back\\sl", '"back\\\\sl', '"back\\sl'),
    "history": ("ban", "'ban"),
    "colon": ("te", "team:", "'team:", '"team:a', "team':a"),
    "equals": ("ke", "key=", "'key=", '"key=a'),
    "at": ("who", "who@", "'who@", '"who@a'),
    "glob": ("st", "'st", '"star*?'), "tilde": ("\\~", "'~"), "hash": ("\\#", "'#"),
    "umlaut": ("gr", "größ", "'größ", '"größe'),
}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_SIGNUP_ENABLED="true") as made:
        made.start_manager()
        yield made
        made.stop()


class Bash:
    """An interactive bash in which 'aliquot template show' only writes down what it was given."""

    def __init__(self, env, folder):
        self.given = folder / "given"
        program = folder / "aliquot"
        program.write_text("#!/bin/sh\n"
                           f"[ \"$1\" = completion ] && exec {shlex.quote(str(BUILD / 'aliquot'))} \"$@\"\n"
                           f"printf '%s\\0' \"$@\" >{shlex.quote(str(self.given))}.new\n"
                           f"mv {shlex.quote(str(self.given))}.new {shlex.quote(str(self.given))}\n")
        program.chmod(0o755)
        self.terminal = Terminal("/usr/bin/bash", "--norc", "--noprofile", "-i", rows=50, columns=250,
                                 env={**env, "PATH": f"{folder}:{env['PATH']}", "LANG": "C.UTF-8",
                                      "INPUTRC": "/dev/null", "TERM": "dumb"})
        self.terminal.send(b"PS1='ready''> '; source <(aliquot completion bash)\r")
        self.terminal.expect(b"ready> ")

    def end(self):
        self.terminal.kill()

    def complete(self, command, typed):
        """The words that the command gets for what is typed, TAB and Enter."""
        self.given.unlink(missing_ok=True)
        self.terminal.send(f"{command} {typed}\t".encode())
        self.terminal.send(b"\r")
        self.terminal.expect(b"ready> ")
        assert self.given.exists(), self.terminal.text
        return self.given.read_bytes().decode().split("\0")[:-1]


def plant(cluster, name):
    text = {"kind": "task_template", "metadata": {"name": name},
            "spec": {"kernel": {"image": "sh"}, "resources": {"cpu": 1, "mem": "64m"}}}
    made = cluster.client().post(f"{V1}/templates", {"payload": json.dumps(text)})
    assert made.status in (200, 201), made


@pytest.fixture(scope="module")
def planted(cluster, tmp_path_factory):
    """Names for templates, and the file that none of them may make."""
    file = tmp_path_factory.mktemp("planted") / "x"
    names = {key: name.replace("{file}", str(file)) for key, name in NAMES.items()}
    for name in names.values():
        plant(cluster, name)
    return names, file


@pytest.mark.parametrize("key", NAMES)
def test_bash_inserts_names_as_text(cluster, planted, tmp_path, key):
    names, file = planted
    bash = Bash({**cluster.env, **cluster.cli_env(ADMIN)}, tmp_path)
    try:
        for typed in TYPED[key]:
            given = bash.complete("aliquot template show", typed)
            assert given == ["template", "show", names[key]], typed
            assert not file.exists(), typed
    finally:
        bash.end()


def test_bash_inserts_the_value_of_an_option(cluster, planted, tmp_path):
    """What stands before the value, quoted or not, stays."""
    names, file = planted
    bash = Bash({**cluster.env, **cluster.cli_env(ADMIN)}, tmp_path)
    try:
        for typed in ("--template tr", "--template=tr", "--template='tr", '--template="tr',
                      "--templ'ate=tr", "'--template=tr", "--name 'a b' --template=train\\;t"):
            given = bash.complete("aliquot run", typed)
            assert given[-1].removeprefix("--template=") == names["semicolon"], typed
            assert given[:-1] in (["run"], ["run", "--template"], ["run", "--name", "a b"]), typed
            assert not file.exists(), typed
    finally:
        bash.end()


def test_bash_takes_several_names_apart(cluster, planted, tmp_path):
    """Where names begin alike, as much is inserted as they share; dashes begin no name."""
    for name in ("same$(x);a", "same$(x);b", "-dashed"):
        plant(cluster, name)
    bash = Bash({**cluster.env, **cluster.cli_env(ADMIN)}, tmp_path)
    try:
        assert bash.complete("aliquot template show", "sa\ta") == ["template", "show", "same$(x);a"]
        assert bash.complete("aliquot template show", "'sa\tb") == ["template", "show", "same$(x);b"]
    finally:
        bash.end()
    offered = cluster.cli("completion", "words", "--", "template", "show", "").stdout.splitlines()
    assert "same$(x);a" in [line.split("\t")[0] for line in offered]
    assert not [line for line in offered if line.startswith("-")]


def addresses(cluster):
    return {user["email"] for user in cluster.client().get(f"{V1}/users?limit=1000").json["items"]}


@pytest.mark.parametrize("email", (
    "newcomer$(touch${IFS}x)@example.com", "a`id`@example.com", "a;id@example.com", "a|id@example.com",
    "a&id@example.com", "a>x@example.com", "a*@example.com", "-a@example.com", "a!b@example.com",
    "a(b)@example.com", "a{b,c}@example.com", "a~@example.com", "a#b@example.com", "a\\b@example.com",
    "a\u202eb@example.com", "a\u009bb@example.com", "a@example.com;id", "a@$(id)", "a@", "@b", "a@b@c"))
def test_addresses_have_no_signs_of_shells(cluster, email):
    """Neither those of strangers, nor those that administrators make."""
    asked = {"email": email, "password": "long enough 1"}
    for reply in (cluster.client(None).post("/auth/signup", asked),
                  cluster.client().post(f"{V1}/users", {**asked, "domain": "default"})):
        assert (reply.status, reply.slug) == (400, "invalid-api-params"), reply
        assert "email" in reply.json["data"], reply.json
    assert email not in addresses(cluster)


@pytest.mark.parametrize("email", ("first.last+tag@sub.example.com", "o'brien@example.com", "x_y-z@1.example",
                                   "50%=a/b@example.com", "김철수@예시.example"))
def test_addresses_of_people_are_fine(cluster, email):
    reply = cluster.client(None).post("/auth/signup", {"email": email, "password": "long enough 1"})
    assert reply.status == 201, reply
    assert cluster.client().post(f"{V1}/users", {"email": "x" + email, "domain": "default"}).status == 201
    assert {email, "x" + email} <= addresses(cluster)


# ---- characters that are not shown ----

def made_with(client, kind, name):
    """The reply to a request for a new object of this name."""
    quoted = urllib.parse.quote(name, safe="")
    text = {"kind": "task_template", "metadata": {"name": name, "tag": name},
            "spec": {"kernel": {"image": "sh"}, "resources": {"cpu": 1, "mem": "64m"}}}
    body = {**WAITS, "name": "hidden", "image": "sh", "type": "batch", "startupCommand": "true"}
    method, path, asked = {
        "domain": ("POST", f"{V1}/domains", {"name": name}),
        "project": ("POST", f"{V1}/groups", {"name": name, "domain": "default"}),
        "resource group": ("POST", f"{V1}/resource-groups", {"name": name}),
        "policy": ("POST", f"{V1}/keypair-policies", {"name": name}),
        "preset": ("PUT", f"{V1}/resource-presets/{quoted}", {"resource_slots": {"cpu": "1"}}),
        "alias": ("PUT", f"{V1}/image-aliases/{quoted}", {"image": "registry.example.com/sh:1"}),
        "user name": ("POST", f"{V1}/users", {"email": "hidden@example.com", "domain": "default",
                                              "username": name}),
        "full name": ("POST", f"{V1}/users", {"email": "hidden@example.com", "domain": "default",
                                              "full_name": name}),
        "own full name": ("POST", "/auth/update-full-name", {"email": EMAIL, "full_name": name}),
        "signed up": ("POST", "/auth/signup", {"email": "hidden@example.com", "full_name": name,
                                               "password": "long enough 1"}),
        "template": ("POST", f"{V1}/templates", {"payload": json.dumps(text)}),
        "folder": ("POST", "/folders", {"name": name, "host": "local:default"}),
        "session": ("POST", "/session", {**body, "name": name}),
        "tag": ("POST", "/session", {**body, "tag": name}),
        "session group": ("POST", "/session", {**body, "session_group": {"name": name}}),
        "gql domain": ("POST", "/admin/gql", {"query": "mutation($n: String!) { create_domain(name: $n,"
                       " props: {is_active: true}) { ok msg } }", "variables": {"n": name}}),
        "gql user": ("POST", "/admin/gql", {"query": "mutation($n: String!) { create_user(email: "
                     '"hidden@example.com", props: {domain_name: "default", password: "long enough 1",'
                     ' username: "hidden", full_name: $n, need_password_change: false}) { ok msg } }',
                     "variables": {"n": name}}),
        "gql group": ("POST", "/admin/gql", {"query": "mutation($n: String!) { create_group(name: $n,"
                      ' props: {domain_name: "default", description: "", is_active: true}) { ok msg } }',
                      "variables": {"n": name}}),
    }[kind]
    return client.send(method, path, asked)


@pytest.mark.parametrize("kind,field", (
    ("domain", "name"), ("project", "name"), ("resource group", "name"), ("policy", "name"),
    ("preset", "name"), ("alias", "alias"), ("user name", "username"), ("full name", "full_name"),
    ("own full name", "full_name"), ("signed up", "full_name"), ("template", "name"),
    ("folder", "name"), ("session", "name"), ("tag", "tag"), ("session group", "name"),
    ("gql domain", "name"), ("gql user", "full_name"), ("gql group", "name")))
def test_names_have_no_characters_that_are_not_shown(cluster, kind, field):
    client = cluster.client(None) if kind == "signed up" else cluster.client()
    for hidden in ("\u009b2J", "\x7f", "\u202e", "\u2066", "\u200b", "\u200e", "\u061c", "\ufeff"):
        reply = made_with(client, kind, f"fine{hidden}name")
        if kind.startswith("gql"):
            said = json.dumps(reply.json)
            assert f"{field}: has a" in said and '"ok": true' not in said, (hidden, reply)
        else:
            assert reply.status == 400 and field in json.dumps(reply.json), (hidden, reply)


@pytest.mark.parametrize("name", ("Müller", "김철수", "می\u200cخواهم", "\U0001f469\u200d\U0001f467"))
def test_names_of_people_are_fine(cluster, name):
    assert made_with(cluster.client(), "own full name", name).status == 200


# ---- spreadsheets ----

FORMULA = '=HYPERLINK("http://evil.example","click")'


def test_exports_have_no_formulas(cluster):
    """Neither the manager's nor the command line's, nor names of those who failed to log in."""
    admin = cluster.client()
    assert made_with(admin, "own full name", FORMULA).status == 200
    assert cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": FORMULA, "password": "x" * 8}).status == 401
    reports = {key: admin.post(f"/export/{key}/csv", {}) for key in ("users", "audit-logs")}
    assert [reply.status for reply in reports.values()] == [200, 200], reports
    texts = [reply.body.decode() for reply in reports.values()]
    texts.append(cluster.cli("admin", "user", "ls", "-o", "csv", "--columns", "email,full_name").stdout)
    texts.append(cluster.cli("admin", "audit-log", "-o", "csv").stdout)
    for text in texts:
        cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
        assert [cell for cell in cells if "HYPERLINK" in cell], text
        assert not [cell for cell in cells if cell[:1] in "=+@\t\r" and cell], text
    assert "'" + FORMULA in [cell for row in csv.reader(io.StringIO(texts[0], newline="")) for cell in row]


def test_output_steers_no_terminal(cluster):
    """Names from before they were checked, here of who failed to log in: in every format."""
    name = "\x1b[2J\u009b2J\x7f\u202e\u2066\u200b\ufeffmark"
    assert cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": name, "password": "x" * 8}).status == 401
    for form in ("table", "wide", "json", "jsonl", "yaml", "csv"):
        text = cluster.cli("admin", "audit-log", "-n", "0", "-o", form).stdout
        assert "mark" in text, form
        assert not re.search("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u202e\u2066\u200b\ufeff]", text), (form, text)
        if form == "json":
            assert name in json.dumps(json.loads(text), ensure_ascii=False).replace("\\u001b", "\x1b")
    log = cluster.log_of("manager")
    assert "mark" in log
    assert not re.search("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u202e\u2066\u200b\ufeff]", log)
