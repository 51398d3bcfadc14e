# SPDX-License-Identifier: Apache-2.0
"""How a manager gets to its server: TLS that is verified, passwords from files, a service, and
several hosts."""

import shutil
import subprocess

import pytest

from cluster import Cluster
from ports import free_port
from postgres import Server

HBA = """local all all trust
hostssl all all 127.0.0.1/32 scram-sha-256
hostnossl all all 127.0.0.1/32 reject
"""


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_authority(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out",
            folder / f"{name}.crt")


def make_certificate(folder, authority, host, target):
    """A key and a certificate for the host where the server looks for them."""
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            f"/CN={host}", "-keyout", target / "server.key", "-out", folder / "server.csr")
    names = folder / "names"
    names.write_text(f"subjectAltName=DNS:{host}\n")
    openssl("x509", "-req", "-days", "2", "-in", folder / "server.csr", "-CA",
            folder / f"{authority}.crt", "-CAkey", folder / f"{authority}.key", "-CAcreateserial",
            "-extfile", names, "-out", target / "server.crt")
    for name in ("server.key", "server.crt"):
        (target / name).chmod(0o600)
        shutil.chown(target / name, target.owner())


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One that wants TLS and a password on 127.0.0.1, where it is db.test."""
    folder = tmp_path_factory.mktemp("authorities")
    own = Server(settings={"listen_addresses": "127.0.0.1", "port": free_port(), "ssl": "on"})
    own.authorities = folder
    own.init()
    for name in ("lab", "stranger"):
        make_authority(folder, name)
    make_certificate(folder, "lab", "db.test", own.data)
    (own.data / "pg_hba.conf").write_text(HBA)
    with own:
        own.run("ALTER ROLE aliquot PASSWORD 'hush'")
        yield own


@pytest.fixture
def cluster(server):
    """With a database of its own, and the password in a file in its user's home."""
    with Cluster() as made:
        made.database = made.folder.name
        server.run(f'CREATE DATABASE "{made.database}"')
        made.password_file = made.folder / "home" / ".pgpass"
        write_secret(made.password_file, f"db.test:{server.port}:{made.database}:aliquot:hush\n")
        yield made


def write_secret(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)


def uri(cluster, server, host="db.test", authority="lab", mode="verify-full", **more):
    words = {"hostaddr": "127.0.0.1", "port": server.port, "user": "aliquot", "sslmode": mode,
             "sslrootcert": server.authorities / f"{authority}.crt", **more}
    return (f"postgresql://{host}/{cluster.database}?"
            + "&".join(f"{name}={value}" for name, value in words.items()))


def refused_start(cluster, where):
    done = cluster.run("aliquot-manager", "--dev", "--state", cluster.folder / "manager",
                       "--listen", f"127.0.0.1:{free_port()}", "--link",
                       f"127.0.0.1:{free_port()}", ALIQUOT_MANAGER_DATABASE=where)
    assert done.returncode == 1 and "hush" not in done.stderr, done
    return done.stderr


def serve(cluster, where):
    cluster.start_manager(ALIQUOT_MANAGER_DATABASE=where)
    assert cluster.client().get("/aliquot/v1/sessions").status == 200
    return where


def test_verified(cluster, server):
    where = serve(cluster, uri(cluster, server))
    ssl = server.run("SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)"
                     " WHERE a.datname = '%s'" % cluster.database)
    assert ssl == ["t"]
    done = cluster.run("aliquot-manager", "db", "shell", "--state", cluster.folder / "manager",
                       says="SHOW default_transaction_read_only;\n",
                       ALIQUOT_MANAGER_DATABASE=where)
    assert done.returncode == 0 and " on" in done.stdout, done
    cluster.stop()


@pytest.mark.parametrize("settings, said", [
    ({"authority": "stranger"}, "certificate verify failed"),
    ({"host": "other.test"}, 'does not match host name "other.test"'),
    ({"mode": "disable"}, "rejects connection"),
])
def test_not_verified(cluster, server, settings, said):
    write_secret(cluster.password_file, "*:*:*:*:hush\n")
    assert said in refused_start(cluster, uri(cluster, server, **settings))


def test_passwords_from_files(cluster, server):
    cluster.password_file.unlink()
    assert "no password supplied" in refused_start(cluster, uri(cluster, server))
    other = cluster.folder / "passwords"
    write_secret(other, "*:*:*:*:wrong\n")
    where = uri(cluster, server, passfile=other)
    assert "password authentication failed" in refused_start(cluster, where)
    write_secret(other, "*:*:*:*:hush\n", mode=0o644)
    said = refused_start(cluster, where)
    assert "group or world access" in said and "no password supplied" in said, said
    other.chmod(0o600)
    serve(cluster, where)
    cluster.stop()


def test_service(cluster, server):
    cluster.password_file.unlink()
    (cluster.folder / "home" / ".pg_service.conf").write_text(f"""[lab]
host=db.test
hostaddr=127.0.0.1
port={server.port}
user=aliquot
password=hush
dbname={cluster.database}
sslmode=verify-full
sslrootcert={server.authorities}/lab.crt
""")
    assert "not found" in refused_start(cluster, "postgresql:///?service=none")
    serve(cluster, "postgresql:///?service=lab")
    cluster.stop()


def test_first_host_is_away(cluster, server):
    """The next one is asked; with each the file's line of that host."""
    where = (f"postgresql://away.test:{free_port()},db.test:{server.port}/{cluster.database}?user=aliquot"
             f"&hostaddr=127.0.0.1,127.0.0.1&sslmode=verify-full"
             f"&sslrootcert={server.authorities}/lab.crt&target_session_attrs=read-write")
    serve(cluster, where)
    cluster.stop()
