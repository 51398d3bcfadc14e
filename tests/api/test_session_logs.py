# SPDX-License-Identifier: Apache-2.0
"""GET /session/{name}/logs, as clients of 22.03 (by the name) and of 26 (with a kernel) ask."""

import uuid

import pytest

from cluster import batch, wait_for, wait_status

MEBIBYTE = 1 << 20


def ended(user, name, command):
    session = user.post("/session", batch(name, command)).json["sessionId"]
    return wait_status(user, session, "TERMINATED")


def log_of(user, path):
    reply = user.get(path)
    assert reply.status == 200 and list(reply.json) == ["result"], reply
    assert list(reply.json["result"]) == ["logs"], reply
    return reply.json["result"]["logs"]


def test_of_a_session_that_has_ended(user, name):
    session = ended(user, name, "echo first; echo second")
    kernel = session["kernels"][0]["id"]
    for path in (f"/session/{name}/logs", f"/session/{session['id']}/logs",
                 f"/session/{session['id'][:12]}/logs",
                 f"/session/{name}/logs?owner_access_key={session['access_key']}",
                 f"/session/{name}/logs?kernel_id={kernel}"):
        assert log_of(user, path) == "first\nsecond\n", path


def test_of_a_session_that_runs(user, name):
    user.post("/session", batch(name, "echo first; sleep 1000"))
    wait_for(lambda: log_of(user, f"/session/{name}/logs") == "first\n", 30, "its first line")
    kernel = wait_status(user, name, "RUNNING")["kernels"][0]["id"]
    assert log_of(user, f"/session/{name}/logs?kernel_id={kernel}") == "first\n"
    assert user.delete(f"/session/{name}").status == 200


def test_of_none(user, name):
    session = ended(user, name, "true")
    assert log_of(user, f"/session/{name}/logs") == ""
    for path, title in ((f"/session/{uuid.uuid4()}/logs", "No such session."),
                        (f"/session/{name}/logs?kernel_id={uuid.uuid4()}", "No such kernel.")):
        reply = user.get(path)
        assert (reply.status, reply.json["title"]) == (404, title)
    assert user.get(f"/session/{name}/logs?kernel_id=main1").status == 400
    assert session["result"] == "SUCCESS"


@pytest.mark.parametrize("octal, text", [
    (r"a\000b\033[1m\r\n", "a\0b\x1b[1m\r\n"), (r"\303\244\342\202\254", "ä€"),
    (r"a\377b\303", "a\ufffdb\ufffd")])
def test_bytes_of_any_kind(user, name, octal, text):
    ended(user, name, f"printf '{octal}'")
    assert log_of(user, f"/session/{name}/logs") == text


def test_the_end_of_a_long_one(user, name):
    """No character is cut in two: each is of three bytes here."""
    line = "€" * 100 + "\n"
    ended(user, name, f"yes '{line.strip()}' | head -c {3 * MEBIBYTE}; echo; echo over")
    log = log_of(user, f"/session/{name}/logs")
    assert MEBIBYTE - 3 <= len(log.encode()) <= MEBIBYTE + 3 and log.endswith("\nover\n")
    assert set(log[:-20]) == {"€", "\n"}
