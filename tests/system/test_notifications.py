# SPDX-License-Identifier: Apache-2.0
"""Channels and rules: the start and end of a real session arrive at a web server and a mail server."""

import json
import os
import re

import pytest

import receivers
from client import USER
from cluster import Cluster, wait_for
from receivers import ADDRESS, Listener, Mailbox
from runtimes import Session, settings_of

pytestmark = pytest.mark.engines
LOGIN = ("robot", "Hush-mail-1")
TEMPLATE = '{"text": "{{ session_name }} is {{status}} ({{ termination_reason }})"}'


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return receivers.make_certificate(tmp_path_factory.mktemp("mail"))


@pytest.fixture(scope="module")
def cluster(certificate):
    runtime = "crun" if os.geteuid() == 0 else "process"
    with Cluster(ALIQUOT_API_CALLBACK_NETWORKS=ADDRESS + "/32", **settings_of(runtime)) as cluster:
        cluster.start_manager(SSL_CERT_FILE=str(certificate[0]))
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def does(cluster, *words, says=""):
    done = cluster.cli("admin", "notification", *words, says=says)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def fails(cluster, *words, says=""):
    done = cluster.cli("admin", "notification", *words, says=says)
    assert done.returncode != 0, (words, done.stdout)
    return done.stderr


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    for kind in ("rule", "channel"):
        rows = json.loads(does(cluster, kind, "ls", "-o", "json"))
        for row in rows["items"] if isinstance(rows, dict) else rows:
            does(cluster, kind, "rm", row["id"])


@pytest.mark.gate
def test_a_session_is_told_of_by_webhook_and_mail(cluster, certificate):
    auth = {"username": LOGIN[0], "password": LOGIN[1]}
    with Listener(ADDRESS, 503, 200) as hook, Mailbox(certificate, LOGIN) as box:
        does(cluster, "channel", "create", "--spec", "-", "hook", says=json.dumps(
            {"url": hook.url(), "headers": {"Authorization": "Bearer Hush-hook-1"}}))
        does(cluster, "channel", "create", "-t", "email", "--spec", "-", "mail",
             says=json.dumps(box.spec(auth)))
        does(cluster, "rule", "create", "-t", "session.terminated", "-c", "hook",
             "--template", TEMPLATE, "ends")
        does(cluster, "rule", "create", "-t", "session.started", "-c", "mail", "--file", "-", "begins",
             says="Läuft: {{ session_name }}\n\nSession {{ session_id }}, {{ session_type }}\n")
        session = Session(cluster, "exit 0")
        name = session.wait()["name"]
        wait_for(lambda: box.mails and hook.told, 60, "mail and webhook")
        cluster.jump(monotonic=11)
        wait_for(lambda: len(hook.told) == 2, 60, "the next try")
        sender, recipients, mail = box.mails[0]
        assert (sender, recipients) == ("aliquot@example.org", ["ops@example.org", "lead@example.org"])
        assert mail["Subject"] == f"Läuft: {name}" and mail["To"] == ", ".join(recipients)
        assert f"Session {session.id}, batch" in mail.get_content()
        assert box.logins == [("PLAIN", *LOGIN)]
        first, again = hook.told
        assert first == again, "it is tried again, as the first answer was 503"
        told = json.loads(again[2])
        assert told["text"].startswith(f"{name} is terminated ("), told
        assert hook.heads[1]["Authorization"] == "Bearer Hush-hook-1"
    for form in ((), ("-o", "json")):
        shown = does(cluster, "channel", "info", "hook", *form) + does(
            cluster, "channel", "info", "mail", *form)
        assert "Hush" not in shown and "Authorization" in shown and LOGIN[0] in shown
    for where in ("manager", "manager.log"):
        for path in [cluster.folder / where, *(cluster.folder / where).rglob("*")]:
            assert not path.is_file() or b"Hush-" not in path.read_bytes(), path
    assert "uses the channel" in fails(cluster, "channel", "rm", "hook")


def test_a_cancelled_session_is_told_of_and_a_disabled_rule_not(cluster):
    with Listener(ADDRESS) as hook:
        does(cluster, "channel", "create", "--url", hook.url(), "hook")
        for name, more in (("off", ["--disabled"]), ("on", [])):
            does(cluster, "rule", "create", "-t", "session.terminated", "-c", "hook",
                 "--template", name + " {{ status }}", *more, name)
        waiting = Session(cluster, "true", config={"resources": {"cpu": "1000", "mem": "64m"}},
                          wait_for_capacity=True)
        waiting.end()
        wait_for(lambda: hook.told, what="the end")
        does(cluster, "rule", "set", "--enabled", "no", "on")
        does(cluster, "rule", "set", "--enabled", "yes", "--template", "late {{ termination_reason }}",
             "off")
        Session(cluster, "exit 3").wait()
        wait_for(lambda: len(hook.told) == 2, what="the other end")
        assert [body for _, _, body in hook.told] == [b"on cancelled", b"late task-failed"]


def test_usage_is_told_of_the_attempt_that_ended(cluster):
    with Listener(ADDRESS) as hook:
        does(cluster, "channel", "create", "--url", hook.url(), "hook")
        does(cluster, "rule", "create", "-t", "session.terminated", "-c", "hook",
             "--template", "{{ status }} after {{ wall_sec }} s", "used")
        waiting = Session(cluster, "exit 3", retry=1, retry_delay=600)
        wait_for(lambda: waiting.wait("PENDING")["attempts"], what="the first attempt's end")
        waiting.end()
        wait_for(lambda: hook.told, what="its end")
        Session(cluster, "exit 3").wait()
        wait_for(lambda: len(hook.told) == 2, what="the other end")
        assert hook.told[0][2] == b"cancelled after  s"
        assert re.fullmatch(rb"terminated after \d+ s", hook.told[1][2]), hook.told


def test_tests_say_what_became_of_them(cluster, certificate):
    with Listener(ADDRESS, 404) as hook, Mailbox(certificate, refuses=["lead@example.org"]) as box:
        does(cluster, "channel", "create", "--url", hook.url(), "hook")
        assert "404" in fails(cluster, "channel", "test", "hook", "hello")
        assert hook.told[0][2] == b"hello"
        hook.statuses[:] = [200]
        does(cluster, "rule", "create", "-t", "session.started", "-c", "hook",
             "--template", '{"t": "{{ session_name }}"}', "begins")
        does(cluster, "rule", "test", "begins", 'session_name=a"b')
        assert json.loads(hook.told[-1][2]) == {"t": 'a"b'}
        assert "no text of a field" in fails(cluster, "rule", "test", "begins", "odd=1")
        does(cluster, "channel", "create", "-t", "email", "--spec", "-", "mail",
             says=json.dumps(box.spec()))
        said = fails(cluster, "channel", "test", "mail", "hello")
        assert "lead@example.org" in said and "550" in said and not box.mails
        does(cluster, "channel", "create", "-t", "email", "--spec", "-", "plain",
             says=json.dumps(box.spec(use_tls=False)))
        assert "530" in fails(cluster, "channel", "test", "plain", "hello")
    assert "session_name" in does(cluster, "rule", "types")


@pytest.mark.parametrize("excluded", ([], ["PLAIN"]), ids=("plain", "login"))
def test_logins_at_the_mail_server(cluster, certificate, excluded):
    with Mailbox(certificate, LOGIN, auth_exclude_mechanism=excluded) as box:
        for password in ("wrong", LOGIN[1]):
            does(cluster, "channel", "create", "-t", "email", "--spec", "-", password,
                 says=json.dumps(box.spec({"username": LOGIN[0], "password": password})))
        said = fails(cluster, "channel", "test", "wrong", "hello")
        assert "the login" in said and "535" in said and LOGIN[1] not in said
        does(cluster, "channel", "test", LOGIN[1], "hello\n.\nworld")
        assert box.mails[0][2].get_content() == "hello\n.\nworld"
        assert box.logins[-1] == ("LOGIN" if excluded else "PLAIN", *LOGIN)


def test_a_mail_server_that_cannot_be_believed(cluster, certificate, tmp_path):
    """Neither without TLS that was asked for, nor with a certificate of somebody else."""
    other = receivers.make_certificate(tmp_path)
    for why, options in (("STARTTLS", {}), ("certificate", {"certificate": other})):
        with Mailbox(**options) as box:
            does(cluster, "channel", "create", "-t", "email", "--spec", "-", why,
                 says=json.dumps(box.spec({"username": LOGIN[0], "password": LOGIN[1]})))
            assert why in fails(cluster, "channel", "test", why, "hello")
            assert not box.mails and not box.logins
    

def test_channels_outlast_the_manager_and_what_waits_does_not(cluster, certificate):
    """As callbacks of sessions: kept in memory, and lost when the manager is killed."""
    with Listener(ADDRESS, 503) as hook:
        does(cluster, "channel", "create", "--url", hook.url(), "hook")
        does(cluster, "rule", "create", "-t", "session.terminated", "-c", "hook", "--template",
             "{{ session_id }}", "ends")
        Session(cluster, "true").wait()
        wait_for(lambda: hook.told, what="the first try")
        cluster.programs["manager"].kill()
        cluster.start_manager(SSL_CERT_FILE=str(certificate[0]))
        hook.statuses[:] = [200]
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        last = Session(cluster, "true")
        last.wait()
        wait_for(lambda: len(hook.told) == 2, what="the next session")
        assert hook.told[1][2].decode() == last.id


def test_nobody_else_sees_them(cluster):
    done = cluster.run("aliquot", "admin", "notification", "channel", "ls", **cluster.cli_env(USER))
    assert done.returncode != 0
