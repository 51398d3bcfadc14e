# SPDX-License-Identifier: Apache-2.0
"""A web server's own life: TLS and its reload, an orderly end, two of them, and what is killed."""

import os
import re
import resource
import signal
import ssl
import subprocess
import threading

import pytest

from client import ADMIN
from cluster import wait_for
from ports import free_port
from web import COOKIE, PASSWORD, Browser, WebSocket, Webbed


def make_certificate(folder, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-keyout", folder / "tls.key", "-out", folder / "tls.crt"],
                   check=True, capture_output=True)


def subject(port):
    return ssl.get_server_certificate(("127.0.0.1", port))


def test_tls_and_its_reload():
    with Webbed() as made:
        made.start_manager()
        make_certificate(made.folder, "first")
        made.start_web(ALIQUOT_WEB_TLS_CERT=str(made.folder / "tls.crt"),
                       ALIQUOT_WEB_TLS_KEY=str(made.folder / "tls.key"))
        browser = made.browser(is_tls=True)
        assert browser.login().json["authenticated"]
        assert f"__Host-{COOKIE}" in browser.cookies
        assert browser.get("/auth?echo=x").status == 200
        ws = browser.socket("/func/stream/session/nothing/pty")
        assert not isinstance(ws, WebSocket) and ws.status == 404
        before = subject(made.web_port)
        make_certificate(made.folder, "second")
        made.programs["web"].signal(signal.SIGHUP)
        wait_for(lambda: subject(made.web_port) != before, 10, "the new certificate")
        assert browser.is_in()
        made.stop()


def test_an_orderly_end():
    """What is under way ends; nothing new begins."""
    with Webbed() as made:
        made.start_manager()
        made.start_web()
        browser = made.browser()
        browser.login()
        connection = browser.connect()
        connection.request("GET", "/func/events/session?sessionName=*&scope=*",
                           headers=browser.headers({}))
        reply = connection.getresponse()
        ended = threading.Event()
        threading.Thread(target=lambda: (read_to_the_end(reply), ended.set()), daemon=True).start()
        assert made.programs["web"].stop(30) == 0
        assert ended.wait(10)
        with pytest.raises(OSError):
            browser.ask("GET", "/health")
        made.programs.pop("web")
        made.stop()


def read_to_the_end(reply):
    try:
        while reply.read(1):
            pass
    except Exception as err:
        assert "IncompleteRead" in repr(err) or isinstance(err, OSError)


def test_two_web_servers_share_logins():
    with Webbed() as made:
        made.start_manager()
        made.start_web()
        first = made.browser()
        first.login()
        port, made.web_port = made.web_port, free_port()
        token = made.client().post("/aliquot/v1/join-tokens", {"web": "other"}).json["token"]
        assert made.run("aliquot-web", "--state", made.folder / "other", "join", made.link, token,
                        ALIQUOT_WEB_NAME="other").returncode == 0
        made.start_web(name="other", join=False, ALIQUOT_WEB_NAME="other")
        second = made.browser()
        second.cookies = dict(first.cookies)
        assert second.is_in()
        first.ask("POST", "/server/logout", {})
        assert not second.is_in()
        assert Browser(port).check().status == 200
        made.stop()


def test_killed_in_the_middle():
    """People stay logged in, and no secret is left in a log."""
    with Webbed() as made:
        made.start_manager()
        made.start_web()
        browser = made.browser()
        browser.login()
        for name in ("web", "manager", "web"):
            stop = threading.Event()
            threads = [threading.Thread(target=keep_asking, args=(made, dict(browser.cookies), stop))
                       for _ in range(4)]
            for thread in threads:
                thread.start()
            made.programs[name].kill()
            made.programs[name].start()
            wait_for(lambda: made.is_webbed({}), 60, "the web server")
            wait_for(lambda: browser.get("/auth?echo=x").status == 200, 30, "an answer")
            stop.set()
            for thread in threads:
                thread.join()
            assert browser.is_in()
        for log in made.folder.glob("*.log"):
            text = log.read_text()
            assert PASSWORD not in text and ADMIN[1] not in text and browser.cookies[COOKIE] not in text
        made.stop()


def how_it_aborts(process):
    """os.CLD_DUMPED or os.CLD_KILLED, where nothing limits cores."""
    resource.prlimit(process.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    process.send_signal(signal.SIGABRT)
    how = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT).si_code
    process.wait()
    return how


def test_no_core_is_left(tmp_path, monkeypatch):
    """Passwords, cookies and secret keys are in memory: it stays there when a program dies."""
    monkeypatch.chdir(tmp_path)
    assert how_it_aborts(subprocess.Popen(["sleep", "60"])) == os.CLD_DUMPED, "nothing leaves cores"
    with Webbed() as made:
        made.start_manager()
        made.start_web()
        assert made.browser().login().json["authenticated"]
        for name in ("web", "manager"):
            assert how_it_aborts(made.programs.pop(name).process) == os.CLD_KILLED, name
        made.stop()


def test_the_manager_is_killed_once_it_has_kept_a_login():
    with Webbed() as made:
        died = made.folder / "died"
        made.start_manager(ALIQUOT_FAULT="api.web-login.durable", ALIQUOT_FAULT_ONCE=str(died))
        made.start_web()
        made.supervise()
        browser = made.browser()
        answer = browser.login()
        assert (answer.status, answer.slug) == (502, "bad-gateway") and died.exists(), answer
        wait_for(lambda: browser.login().status == 200, 60, "a login")
        logins = browser.get("/aliquot/v1/logins").json["items"]
        assert browser.is_in() and len(logins) == 2  # the first opens nothing: nobody has its cookie
        made.stop()


def keep_asking(made, cookies, stop):
    browser = made.browser()
    browser.cookies = cookies
    while not stop.is_set():
        try:
            browser.get("/auth?echo=x")
            made.browser().login()
        except Exception:
            pass


def test_metrics():
    with Webbed() as made:
        made.start_manager()
        port = free_port()
        made.start_web(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{port}")
        browser = made.browser()
        browser.login()
        browser.get("/auth?echo=x")
        text = Browser(port).ask("GET", "/metrics").body.decode()
        assert "aliquot_web_logins_total 1\n" in text
        assert "aliquot_web_manager_connected 1\n" in text
        assert re.search(r"^aliquot_web_requests_total [1-9]", text, re.M)
        made.stop()
