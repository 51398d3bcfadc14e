# SPDX-License-Identifier: Apache-2.0
"""Code that is run in sessions, as Backend.AI's clients ask for it."""


def ask(cluster, session, mode, code="", run=None, **options):
    """The result of one request about a run."""
    reply = cluster.client().post(f"/session/{session}", {"mode": mode, "code": code, "runId": run,
                                                          "options": options or None})
    assert reply.status == 200, reply
    return reply.json["result"]


def join(console):
    """Its records, where neighbours of standard output or of errors are one."""
    joined = []
    for kind, text in console:
        if joined and joined[-1][0] == kind and kind in ("stdout", "stderr"):
            joined[-1][1] += text
        else:
            joined.append([kind, text])
    return joined
