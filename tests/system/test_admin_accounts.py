# SPDX-License-Identifier: Apache-2.0
"""aliquot admin: users and projects come and go, and questions are asked on a terminal."""

import json
import subprocess

import pytest

from cluster import Cluster
from terminal import Terminal
from world import BUILD

pytestmark = [pytest.mark.engines, pytest.mark.gate]

ALIQUOT = str(BUILD / "aliquot")


class Admin:
    def __init__(self, env):
        self.env = env

    def run(self, *words):
        return subprocess.run([ALIQUOT, "admin", *words], env=self.env, capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL)

    def __call__(self, *words, status=0):
        done = self.run(*words)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def names(self, *words):
        return self(*words, "-o", "name").split()

    def terminal(self, *words):
        return Terminal(ALIQUOT, "admin", *words, env=self.env, columns=200)


@pytest.fixture(scope="module")
def admin():
    with Cluster(TERM="xterm", LC_ALL="C.UTF-8") as cluster:
        cluster.start_manager()
        yield Admin({**cluster.env, **cluster.cli_env()})
        cluster.check_audits()


def test_a_new_user_joins_the_default_project(admin):
    admin("user", "create", "ann@example.com")
    table = admin("user", "ls")
    assert "PROJECTS" in table.splitlines()[0]
    [row] = [line for line in table.splitlines() if "ann@example.com" in line]
    assert row.count("default") == 2, "the domain and the project"
    admin("domain", "create", "physics")
    done = admin.run("user", "create", "bob@example.com", "--domain", "physics")
    assert "aliquot admin project add-user PROJECT bob@example.com" in done.stderr
    admin("project", "create", "optics", "--domain", "physics")
    admin("project", "add-user", "optics", "bob@example.com")
    shown = json.loads(admin("user", "ls", "-o", "json", "--filter", "email=bob@example.com"))
    assert shown[0]["projects"] == ["optics"]
    admin("project", "remove-user", "optics", "bob@example.com")
    shown = json.loads(admin("user", "ls", "-o", "json", "--filter", "email=bob@example.com"))
    assert shown[0]["projects"] == []


def test_a_user_made_with_a_password_logs_in(admin):
    made = subprocess.run([ALIQUOT, "admin", "user", "create", "eve@example.com",
                           "--password-stdin"], env=admin.env, input="long enough\n",
                          capture_output=True, text=True, timeout=60)
    assert made.returncode == 0 and "no password" not in made.stderr, made
    env = {name: text for name, text in admin.env.items() if not name.endswith("_KEY")}
    done = subprocess.run([ALIQUOT, "login", admin.env["ALIQUOT_ENDPOINT"], "eve@example.com",
                           "--profile", "eve", "--password-stdin"], env=env, input="long enough\n",
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    asked = subprocess.run([ALIQUOT, "whoami", "--profile", "eve", "-o", "json"], env=env,
                           capture_output=True, text=True, timeout=60)
    assert json.loads(asked.stdout)["user_id"] == "eve@example.com", asked
    without = admin.run("user", "create", "mute@example.com")
    assert "aliquot admin user set mute@example.com --password-stdin" in without.stderr, without


def test_group_is_another_word_for_project(admin):
    assert admin("group", "ls") == admin("project", "ls")
    admin("group", "create", "spelled")
    assert "spelled" in admin.names("project", "ls")
    help_text = subprocess.run([ALIQUOT, "help", "admin"], env=admin.env, capture_output=True,
                               text=True, timeout=60).stdout
    assert "admin project" in help_text and "admin group" not in help_text


@pytest.mark.parametrize("noun, name, create", [
    ("user", "gone@example.com", ()), ("project", "gone", ()), ("domain", "gone", ()),
    ("policy", "gone", ()), ("resource-group", "gone", ()),
])
def test_rm_hides_and_restore_undoes_it(admin, noun, name, create):
    admin(noun, "create", name, *create)
    done = admin.run(noun, "rm", name)
    assert done.returncode == 0 and f"aliquot admin {noun} restore {name}" in done.stderr, done
    assert name not in admin.names(noun, "ls")
    assert name in admin.names(noun, "ls", "--all")
    admin(noun, "restore", name)
    assert name in admin.names(noun, "ls")
    admin(noun, "rm", "--purge", "--yes", name)
    assert name not in admin.names(noun, "ls", "--all")
    done = admin.run(noun, "rm", name)
    assert done.returncode == 5, done


def test_a_purge_asks(admin):
    admin("user", "create", "asked@example.com")
    plan = json.loads(admin("user", "rm", "--purge", "--dry-run", "asked@example.com", "-o", "json"))
    assert (plan["keypairs"], plan["memberships"], plan["status"]) == (1, 1, "purged")
    done = admin.run("user", "rm", "--purge", "asked@example.com")
    assert done.returncode == 2 and "--yes" in done.stderr, "there is no terminal to ask on"
    for answer, status in ((b"n\n", 1), (b"\n", 1), (b"y\n", 0)):
        assert "asked@example.com" in admin.names("user", "ls")
        terminal = admin.terminal("user", "rm", "--purge", "asked@example.com")
        terminal.expect(b"Remove user asked@example.com with 1 keypair, 1 membership for good?")
        terminal.expect(b"[y/N]")
        terminal.send(answer)
        assert terminal.wait() == status
    assert "asked@example.com" not in admin.names("user", "ls", "--all")


def test_several_are_asked_for_once(admin):
    admin("policy", "create", "one")
    admin("policy", "create", "two")
    terminal = admin.terminal("policy", "rm", "--purge", "one", "two")
    terminal.expect(b"Remove policy one, and policy two for good? [y/N]")
    terminal.send(b"y\n")
    assert terminal.wait() == 0
    assert not {"one", "two"} & set(admin.names("policy", "ls", "--all"))


def test_ones_own_account_stays(admin):
    done = admin.run("user", "rm", "admin@lablup.com")
    assert done.returncode == 6 and "your own account" in done.stderr, done
    assert "admin@lablup.com" in admin.names("user", "ls")


def test_a_cluster_keeps_a_superadmin_who_can_log_in(admin):
    key, = [row["access_key"] for row in json.loads(admin("keypair", "ls", "-o", "json"))
            if row["user"] == "admin@lablup.com"]
    changes = [("keypair", "set", key, "--is-active", "no"), ("keypair", "rm", key),
               ("user", "set", "admin@lablup.com", "--status", "inactive"),
               ("user", "set", "admin@lablup.com", "--role", "user")]
    for change in changes:
        done = admin.run(*change)
        assert done.returncode == 6 and done.stderr == (
            "aliquot: the change would leave no active superadmin with an active keypair; "
            "create another keypair or superadmin first\n"), done
    made = json.loads(admin("keypair", "create", "admin@lablup.com", "-o", "json"))
    other = {**admin.env, "ALIQUOT_ACCESS_KEY": made["access_key"],
             "ALIQUOT_SECRET_KEY": made["secret_key"]}
    admin("keypair", "set", key, "--is-active", "no")
    assert Admin(other).run("keypair", "rm", made["access_key"]).returncode == 6
    Admin(other)("keypair", "set", key, "--is-active", "yes")
    admin("keypair", "rm", made["access_key"])


def test_who_may_use_a_resource_group_can_be_taken_back(admin):
    admin("resource-group", "create", "lent")
    admin("resource-group", "allow", "lent", "--domain", "default")
    create = [ALIQUOT, "session", "create", "--dry-run", "--resource-group", "lent", "-r", "cpu=1",
              "--wait-for-capacity", "--", "true"]

    def may_use():
        done = subprocess.run(create, env=admin.env, capture_output=True, text=True, timeout=60)
        return done.returncode == 0 or "lent" not in done.stderr
    assert may_use()
    admin("resource-group", "disallow", "lent", "--domain", "default")
    assert not may_use()
    admin("resource-group", "disallow", "lent", "--domain", "nowhere", status=5)
    done = admin.run("resource-group", "allow", "lent")
    assert done.returncode == 2 and "give one of --domain, --group and" in done.stderr, done
    admin("resource-group", "allow", "lent", "--group", "default")
    assert may_use()
    admin("resource-group", "disallow", "lent", "--group", "default")
    assert not may_use()
    done = admin.run("resource-group", "allow", "lent", "--group", "nowhere")
    assert done.returncode == 5 and "there is no project 'nowhere'" in done.stderr, done
    done = admin.run("resource-group", "set", "", "--retries", "1")
    assert done.returncode == 2 and "the name of the resource group is empty" in done.stderr, done


def test_a_user_shows_the_networks(admin):
    admin("user", "create", "near@example.com")
    shown = admin("user", "set", "near@example.com", "--allowed-client-ip", "10.0.0.0/8",
                  "--allowed-client-ip", "192.0.2.1")
    assert "ALLOWED-FROM" in shown and "10.0.0.0/8, 192.0.2.1" in shown, shown


def test_a_resource_group_shows_what_was_set(admin):
    """Options without a column, such as --fair-share, hide none of the columns behind them."""
    admin("resource-group", "create", "night", "--description", "after 8 pm", "--preemption",
          "order=newest", "--fair-share", "half_life_days=7", "--pending-timeout-sec", "1d",
          "--agent-loss-policy", "requeue", "--agent-loss-grace-sec", "10m")
    [shown] = json.loads(admin("resource-group", "ls", "-o", "json", "--filter", "name=night"))
    group = json.loads(admin("resource-group", "info", "night", "-o", "json"))
    assert group["preemption"]["order"] == "newest", group
    for row in (shown, group):
        assert (row["description"], row["agent_loss_policy"], row["agent_loss_grace_sec"],
                row["pending_timeout_sec"]) == ("after 8 pm", "requeue", 600, 86400), row
    table = admin("resource-group", "info", "night")
    assert "AGENT-LOSS" in table and "PREEMPTION" in table, table
    done = admin.run("resource-group", "set", "night", "--scheduler-opts", "x")
    assert "--scheduler-opts: 'x' is not valid JSON" in done.stderr, done
