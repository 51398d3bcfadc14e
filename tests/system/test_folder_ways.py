# SPDX-License-Identifier: Apache-2.0
"""Who may do what with a folder, by each way to it: the API with the storage host, a container that
has it mounted, and SFTP. What was done is looked for on the volume.

As in test_container_network.py the cluster has a network namespace of its own. Run as a program,
this file tests the table in it.
"""

import contextlib
import json
import subprocess
import sys
import urllib.request

import pytest

from cluster import batch, wait_for, wait_status
from mounts import HOST, Mounted
from runtimes import settings_of
from test_container_network import UPLINK, check_all_gone, tell_apart
from test_system_session import NODE, must

# Files of it: list, read, write a new one, change, delete. The folder: Delete, reName, Share on.
# A dash is what is refused; by a mount and SFTP folders are neither removed, renamed nor lent.
TABLE = """
            API         mount       SFTP
owner       lrwcd DNS   lrwcd ---   lrwcd ---
guest-ro    lr--- ---   lr--- ---   lr--- ---
guest-rw    lrwcd ---   lrwcd ---   lrwcd ---
guest-wd    lrwcd D--   lrwcd ---   lrwcd ---
member-ro   lr--- ---   lr--- ---   lr--- ---
member-rw   lrwcd ---   lrwcd ---   lrwcd ---
stranger    ----- ---   ----- ---   ----- ---
admin       ----- DN-   ----- ---   ----- ---
"""
ROLES = [line.split()[0] for line in TABLE.splitlines()[2:]]  # and names of their folders
PEOPLE = ["owner", "guest-ro", "guest-rw", "guest-wd", "member", "stranger", "admin"]
WITHOUT = ("stranger", "admin")  # who get at none of its files


def roles_of(person):
    return [role for role in ROLES if role.startswith(person)]


class Ways(Mounted):
    """Each role has a folder that nobody else uses, and each person one of the own."""

    def begin(self):
        self.start("agent")
        admin = self.client()
        wait_for(lambda: admin.get("/folders/_/hosts").json["allowed"], what="the storage host")
        assert admin.post("/aliquot/v1/groups", {"name": "shelf", "domain": "default"}).status == 201
        self.people, self.ids = {}, {}
        for person in (*PEOPLE, "outsider"):
            self.people[person] = admin if person == "admin" else self.make_person(person)
        for person in PEOPLE:
            self.make_folder_of(self.people[person], f"own-{person}")
        for role in ROLES:
            if role.startswith("member"):
                self.make_folder_of(admin, role, group="shelf", permission=role[-2:])
                continue
            self.make_folder_of(self.people["owner"], role)
            if role.startswith("guest"):
                body = {"perm": role[-2:], "user_ids": [self.people[role].email]}
                reply = self.people["owner"].post(f"/folders/{self.ids[role]}/invite", body)
                assert reply.status == 201, reply
                accept_all(self.people[role])

    def make_person(self, name):
        email, admin = f"{name}@lablup.com", self.client()
        assert admin.post("/aliquot/v1/users", {
            "email": email, "domain": "default",
            "groups": ["default", "shelf"] if name == "member" else ["default"]}).status == 201
        key = admin.post("/aliquot/v1/keypairs", {"user": email}).json
        made = self.client((key["access_key"], key["secret_key"]))
        made.email = email
        return made

    def make_folder_of(self, client, name, **more):
        reply = client.post("/folders", {"name": name, "host": HOST, **more})
        assert reply.status == 201, reply
        self.ids[name] = reply.json["id"]

    def files(self, name):
        id_ = self.ids[name]
        return self.volume / id_[:2] / id_[2:4] / id_[4:]

    def keeper(self, role):
        return self.client() if role.startswith("member") else self.people["owner"]

    def fill(self):
        """The folders as they are before each way."""
        for role in ROLES:
            place, keeper, at = self.files(role), self.keeper(role), f"/folders/{self.ids[role]}"
            if keeper.get(at).json["status"] != "ready":
                keeper.post("/folders/restore-from-trash-bin", {"id": self.ids[role]})
            if keeper.get(at).json["name"] != role:
                keeper.post(f"{at}/rename", {"new_name": role})
            assert keeper.get(at).json["status"] == "ready" and place.is_dir(), role
            (place / "new").unlink(missing_ok=True)
            (place / "text").write_text(f"text of {role}\n")
            for name in ("changed", "deleted"):
                (place / name).write_text("before")

    def seen(self, role, lines):
        """What was done to a folder, as the table has it; 'lines' are what was got to see."""
        place, shown = self.files(role), self.keeper(role).get(f"/folders/{self.ids[role]}").json
        person = next(person for person in PEOPLE if role in roles_of(person))

        def text(name):
            return (place / name).read_text() if (place / name).exists() else None
        done = {
            "l": f"{role}/deleted" in lines,
            "r": f"text of {role}" in lines,
            "w": text("new") == "after", "c": text("changed") == "after",
            "d": text("deleted") is None,
            " ": True,
            "D": shown["status"] != "ready" or not place.exists(),
            "N": shown["name"] != role or f"moved-{role}" in lines,
            "S": f"others see {role}" in lines or (self.files(f"own-{person}") / role).exists()}
        return "".join(letter if done[letter] else "-" for letter in done)


def accept_all(client):
    for invitation in client.get("/folders/invitations/list").json["invitations"]:
        reply = client.post("/folders/invitations/accept", {"inv_id": invitation["id"]})
        assert reply.status == 200, reply


# ---- ways: each returns the lines that a person got to see ----

def way_of_api(cluster, person):
    client, outsider, lines = cluster.people[person], cluster.people["outsider"], []

    def ask(method, path, /, **body):
        """The answer, unless it is refused; to who may not know of the folder as if there is none."""
        reply = client.send(method, f"/folders/{cluster.ids[role]}{path}", body or None)
        assert reply.status < 300 or reply.status == (404 if person == "stranger" else 403), reply
        return (reply.json if reply.body else {}) if reply.status < 300 else None

    def upload(name):
        if given := ask("POST", "/request-upload", path=name, size=len("after")):
            assert cluster.patch(f"/upload?token={given['token']}", b"after", 0)[0] == 204
    for role in roles_of(person):
        if listed := ask("GET", "/files?path=."):
            lines += [f"{role}/{item['name']}" for item in listed["items"]]
        if given := ask("POST", "/request-download", path="text"):
            with urllib.request.urlopen(f"{given['url']}?token={given['token']}", timeout=60) as got:
                lines += got.read().decode().splitlines()
        upload("new")
        upload("changed")
        ask("DELETE", "/delete-files", files=["deleted"], recursive=False)
        ask("POST", "/invite", perm="ro", user_ids=[outsider.email])
        accept_all(outsider)
        if outsider.get(f"/folders/{cluster.ids[role]}/files").status == 200:
            lines.append(f"others see {role}")
        if role.startswith("member"):
            assert ask("POST", "/share", permission="rw", emails=[client.email]) is None
        ask("POST", "/rename", new_name=f"moved-{role}")
        ask("DELETE", "")
    return lines


MOUNTED = """
for f in {roles}; do
    ls "$f" | sed "s,^,$f/,"; cat "$f/text"
    printf after > "$f/new"; printf after > "$f/changed"; rm -f "$f/deleted"
    ln "$f/text" "own-{person}/$f"; mv "$f" "moved-$f"; rmdir "$f" "moved-$f"
done
ls
"""


def way_of_mount(cluster, person):
    """By ids, which need no name that is known."""
    client, roles = cluster.people[person], roles_of(person)

    def ask(*folders):
        body = batch(f"mount-{person}", MOUNTED.format(roles=" ".join(roles), person=person))
        body["config"]["mount_ids"] = [cluster.ids[folder] for folder in folders]
        return client.post("/session", {**body, "image": "host"})
    reply = ask(f"own-{person}", *roles)
    if person in WITHOUT:
        assert reply.status in (403, 404), reply
        reply = ask(f"own-{person}")
    assert reply.status == 201, reply
    session = reply.json["sessionId"]
    shown = wait_status(client, session, "TERMINATED", "ERROR")
    log = client.get(f"/aliquot/v1/sessions/{session}/logs", timeout=20).body.decode()
    assert f"own-{person}" in log.splitlines(), (shown, log)
    return log.splitlines()


def way_of_sftp(cluster, person):
    home, roles = cluster.folder / f"home-{person}", roles_of(person)
    env = {**cluster.cli_env(cluster.people[person].keypair), "HOME": str(home)}
    home.mkdir()
    (home / "after").write_text("after")

    def reach(*folders):
        return cluster.run("aliquot", "-o", "json", "folder", "sftp", *folders, **env)
    done = reach(f"own-{person}", *roles)
    if person in WITHOUT:
        assert done.returncode and f"'{roles[0]}'" in done.stderr, done
        done = reach(f"own-{person}")
    session = json.loads(must(done))["session"]
    must(cluster.run("aliquot", "ssh-config", session, "--write", **env))
    commands = []
    for role in roles:
        commands += [f"-ls -1 {role}", f"-get {role}/text {role}", f"-put after {role}/new",
                     f"-put after {role}/changed", f"-rm {role}/deleted",
                     f"-ln {role}/text own-{person}/{role}", f"-rename {role} moved-{role}",
                     f"-rmdir {role}", f"-rmdir moved-{role}"]
    done = subprocess.run(
        ["sftp", "-q", "-F", home / ".ssh" / "config", "-b", "-", f"{session}.aliquot"],
        input="\n".join([*commands, "ls -1"]) + "\n", cwd=home, capture_output=True, text=True,
        timeout=120, check=False, env={**cluster.env, **env})
    lines = must(done).splitlines()
    assert f"own-{person}" in lines, done
    for role in roles:
        with contextlib.suppress(FileNotFoundError):
            lines += (home / role).read_text().splitlines()
    client = cluster.people[person]
    ended = client.delete(f"/session/{session}")
    assert ended.status in (200, 204), ended
    wait_status(client, session, "TERMINATED")
    return lines


WAYS = {"API": way_of_api, "mount": way_of_mount, "SFTP": way_of_sftp}


def tell(runtime):
    for command in UPLINK:
        subprocess.run(command.split(), check=True)
    with Ways(**{**settings_of(runtime), "ALIQUOT_NETWORK_ENABLED": "true",
                 "ALIQUOT_NODE_ADDRESS": NODE}) as cluster:
        cluster.begin()
        cells = {}
        for way, go in WAYS.items():
            cluster.fill()
            for person in PEOPLE:
                lines = go(cluster, person)
                cells.update({(role, way): cluster.seen(role, lines) for role in roles_of(person)})
        rows = [("", *WAYS), *((role, *(cells[role, way] for way in WAYS)) for role in ROLES)]
        found = "\n".join("".join(f"{cell:12}" for cell in row).rstrip() for row in rows)
        assert found == TABLE.strip("\n"), f"found:\n{found}\nwanted:{TABLE}"
        check_all_gone(cluster)


@pytest.mark.gate
def test_the_table():
    tell_apart(__file__, "crun", "table")


if __name__ == "__main__":
    tell(sys.argv[1])
