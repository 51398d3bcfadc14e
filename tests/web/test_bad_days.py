# SPDX-License-Identifier: Apache-2.0
"""Programs that are killed under people's hands: they stay logged in, and what was sent is there."""

import os
import pathlib
import socket
import threading

import pytest

from client import ADMIN, USER
from cluster import interactive, wait_for, wait_status
from storage import Stored
from web import COOKIE, EMAIL, PASSWORD, USER_PASSWORD, WebSocket, Webbed

SIZE = 8 << 20
PIECE = 1 << 20


class Stormy(Stored, Webbed):
    pass


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Stormy() as made:
        made.start_manager()
        made.start_storage()
        made.start_agent()
        made.start_web()
        assert made.client().post("/session", interactive("shell")).status == 201
        wait_status(made.client(), "shell", "RUNNING")
        yield made
        made.stop()


@pytest.fixture(name="browser")
def browser_fixture(cluster):
    made = cluster.browser()
    assert made.login().json["authenticated"]
    return made


def kill(cluster, browser, *names):
    """Until all is as it was."""
    for name in names:
        cluster.programs[name].kill()
    for name in names:
        cluster.programs[name].start()
    wait_for(lambda: cluster.is_webbed({}) and cluster.is_stored(), 60, "the programs")
    wait_for(lambda: browser.get("/auth?echo=x").status == 200, 60, "an answer")


@pytest.mark.parametrize("name", ["web", "manager"])
def test_during_a_login(cluster, browser, name):
    """It is one, or none; nobody else loses theirs."""
    answers, is_over = [], threading.Event()

    def keep_on():
        while not is_over.is_set():
            one = cluster.browser()
            try:
                answers.append((one, one.login()))
            except OSError:
                answers.append((one, None))
            except Exception as err:  # the answer was cut
                assert type(err).__module__ == "http.client", err
    threads = [threading.Thread(target=keep_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(answers) > 3, 60, "logins")
    kill(cluster, browser, name)
    before = len(answers)
    wait_for(lambda: len(answers) > before + 3, 60, "logins afterwards")
    is_over.set()
    for thread in threads:
        thread.join()
    assert browser.is_in()
    for one, answer in answers:
        if answer is not None and answer.status == 200:
            assert answer.json["authenticated"]
            assert one.is_in()
        assert answer is None or answer.status in (200, 502), answer


def test_during_an_upload_to_a_folder(cluster, browser):
    """It goes on where it was, by the same address."""
    data = os.urandom(SIZE)
    assert browser.post("/folders", {"name": "kept", "host": "local:volume1"}).status == 201
    reply = browser.post("/folders/kept/request-upload", {"path": "big", "size": SIZE})
    assert reply.status == 200, reply
    url = "/upload?token=" + reply.json["token"]
    for names in (["web", "manager"], ["storage"], ["manager", "storage", "web"]):
        at = cluster.offset(url)
        head = (f"PATCH {url} HTTP/1.1\r\nHost: 127.0.0.1\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: {at}\r\n"
                f"Content-Type: application/offset+octet-stream\r\nContent-Length: {SIZE - at}\r\n\r\n")
        with socket.create_connection(("127.0.0.1", cluster.port), timeout=60) as sock:
            sock.sendall(head.encode() + data[at:at + PIECE])
            wait_for(lambda: any(path.stat().st_size >= at + PIECE for path in cluster.volume.rglob("*")
                                 if path.is_file()), 60, "it to be written")
            kill(cluster, browser, *names)
    at = cluster.offset(url)
    assert at >= PIECE
    assert cluster.patch(url, data[at:], at)[0] == 204
    reply = browser.post("/folders/kept/request-download", {"file": "big"})
    status, _, body = cluster.ask("GET", "/download?token=" + reply.json["token"])
    assert status == 200 and body == data


def test_during_an_upload_to_a_session(cluster, browser):
    """Half a body is none: the file is as it was, and is sent again."""
    path = "/func/aliquot/v1/sessions/shell/files?path=kept.bin"
    for name in ("web", "manager"):
        connection = browser.connect()
        connection.putrequest("PUT", path)
        for key, value in browser.headers({"Content-Length": str(SIZE),
                                           "Content-Type": "application/octet-stream"}).items():
            connection.putheader(key, value)
        connection.endheaders(b"x" * PIECE)
        kill(cluster, browser, name)
        with pytest.raises(Exception):
            connection.send(b"x" * (SIZE - PIECE))
            reply = connection.getresponse()
            assert reply.status == 502
            raise ConnectionError("refused in words")
        connection.close()
    assert browser.is_in()


def test_with_an_open_terminal(cluster, browser):
    """It is told, or cut, and opens again with the same login; the session goes on."""
    for name, said in (("manager", (8, b"\x03\xe9the manager is away")), ("web", (None, b""))):
        terminal = browser.socket("/func/stream/session/shell/pty")
        assert isinstance(terminal, WebSocket), terminal
        assert terminal.receive()[0] in (1, 2)
        kill(cluster, browser, name)
        got = terminal.receive()
        while got[0] in (1, 2, 9):
            got = terminal.receive()
        assert got == said
        terminal.close()

    def opens():
        terminal = browser.socket("/func/stream/session/shell/pty")
        return isinstance(terminal, WebSocket) and terminal.receive()[0] in (1, 2)
    wait_for(opens, 60, "the terminal")


def test_no_secret_is_left_anywhere(cluster, browser):
    """After all that: in no log, environment or command line."""
    secrets = [PASSWORD, USER_PASSWORD, ADMIN[1], USER[1], browser.cookies[COOKIE]]
    texts = {log.name: log.read_text(errors="replace") for log in cluster.folder.glob("*.log")}
    for name, program in cluster.programs.items():
        for what in ("environ", "cmdline"):
            texts[f"{name} {what}"] = pathlib.Path(f"/proc/{program.pid}/{what}").read_bytes().decode()
    for name, text in texts.items():
        assert not [secret for secret in secrets if secret in text], name
    assert EMAIL not in cluster.log_of("web")
