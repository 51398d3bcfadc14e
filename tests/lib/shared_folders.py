# SPDX-License-Identifier: Apache-2.0
"""A cluster with a storage host, and people who share folders on it."""

import itertools
import uuid

from client import USER
from cluster import wait_for
from storage import Stored

LARGE = 4 << 30  # bytes of a file without blocks
numbers = itertools.count(1)


class Folders(Stored):
    """The owner is the fixture's user; a guest and a member are made for each test."""

    def begin(self, **settings):
        self.start_manager()
        self.start_storage(**settings)
        self.admin, self.owner = self.client(), self.client(USER)
        wait_for(lambda: self.admin.get("/folders/_/hosts").json["allowed"], what="the volume")
        assert self.admin.post("/aliquot/v1/groups", {"name": "shelf", "domain": "default"}
                               ).status == 201
        return self

    def make_person(self, **more):
        email = f"person{next(numbers)}@lablup.com"
        assert self.admin.post("/aliquot/v1/users", {"email": email, "domain": "default", **more}
                               ).status == 201
        key = self.admin.post("/aliquot/v1/keypairs", {"user": email}).json
        client = self.client((key["access_key"], key["secret_key"]))
        client.email, client.key = email, key["access_key"]
        client.id = next(row["id"] for row in self.admin.get("/aliquot/v1/users").json["items"]
                         if row["email"] == email)
        return client

    def make_files(self, client, **more):
        """A folder with a small and a large file; its id."""
        made = client.post("/folders", {"name": f"f{next(numbers)}", **more})
        assert made.status == 201, made
        folder = str(uuid.UUID(made.json["id"]))
        (self.place(uuid.UUID(folder)) / "small").mkdir()
        for name in ("a.txt", "small/b.txt"):
            (self.place(uuid.UUID(folder)) / name).write_text("secret")
        with (self.place(uuid.UUID(folder)) / "large").open("wb") as file:
            file.truncate(LARGE)
        return folder

    def lend(self, guest, folder, permission="rw", owner=None):
        assert (owner or self.owner).post(f"/folders/{folder}/invite", {
            "perm": permission, "user_ids": [guest.email]}).json["invited_ids"] == [guest.email]
        guest.post("/folders/invitations/accept", {"inv_id": invitation(guest, folder)["id"]})

    def url(self, client, folder, op, **params):
        reply = client.post(f"/folders/{folder}/request-{op}", params)
        assert reply.status == 200, reply
        return f"/{op}?token={reply.json['token']}"


def invitation(client, folder, sent=False):
    path = "/folders/invitations/list" + ("-sent" if sent else "")
    found = [row for row in client.get(path).json["invitations"] if row["vfolder_id"] == folder]
    return found[0] if found else None
