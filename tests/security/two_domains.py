# SPDX-License-Identifier: Apache-2.0
"""A second domain beside the one of the development users, with a user and an administrator."""

from client import DOMAIN_ADMIN, USER, Client

V1 = "/aliquot/v1"
OTHER = "other"


def make_user(admin, email, domain, role="user"):
    """A client for a new user of the domain."""
    made = admin.post(V1 + "/users", {"email": email, "domain": domain, "role": role})
    assert made.status == 201, made
    key = admin.post(V1 + "/keypairs", {"user": email, "rate_limit": 0}).json
    return Client(admin.address, (key["access_key"], key["secret_key"]))


class TwoDomains:
    """Clients: admin of all; user and boss of one domain; stranger and strange_boss of another."""

    def __init__(self, cluster):
        self.admin = cluster.client()
        self.user, self.boss = cluster.client(USER), cluster.client(DOMAIN_ADMIN)
        for key in (self.admin.keypair, self.user.keypair, self.boss.keypair):
            changed = self.admin.send("PATCH", f"{V1}/keypairs/{key[0]}", {"rate_limit": 0})
            assert changed.status == 200, changed
        assert self.admin.post(V1 + "/domains", {"name": OTHER}).status == 201
        project = self.admin.post(V1 + "/groups", {"name": "default", "domain": OTHER})
        assert project.status == 201, project
        allowed = self.admin.post(V1 + "/resource-groups/default/allow", {"domain": OTHER})
        assert allowed.status == 204, allowed
        self.stranger = make_user(self.admin, "stranger@lablup.com", OTHER)
        self.strange_boss = make_user(self.admin, "strange-boss@lablup.com", OTHER, "admin")
        members = {"users": ["stranger@lablup.com", "strange-boss@lablup.com"]}
        added = self.admin.post(f"{V1}/groups/{project.json['id']}/add-users", members)
        assert added.status == 204, added
