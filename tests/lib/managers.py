# SPDX-License-Identifier: Apache-2.0
"""A further manager of a cluster: its token, its state folder."""

from ports import free_port

TOKENS = "/aliquot/v1/join-tokens"
FILES = ("aliquot.db.key", "ca/ca.crt", "ca/ca.key", "database", "name")


def make_token(cluster, name="", **more):
    reply = cluster.client().post(TOKENS, {"manager": name, **more})
    assert reply.status == 201, reply
    return reply.json["token"]


def join(cluster, state, token, *options, stdin=None, **settings):
    """'aliquot-manager join', with addresses of its own and no other settings."""
    return cluster.run("aliquot-manager", "--state", cluster.folder / state,
                       "--listen", f"127.0.0.1:{free_port()}", "--link",
                       f"127.0.0.1:{free_port()}", *options, "join", cluster.link, token,
                       ALIQUOT_MANAGER_DATABASE="", **settings)


def modes(folder):
    """{file: mode} of all that is in a state folder."""
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o7777
            for path in sorted(folder.rglob("*")) if path.is_file()}


def managers(cluster):
    reply = cluster.client().get("/aliquot/v1/managers")
    assert reply.status == 200, reply
    return {item["name"]: item for item in reply.json["items"]}
