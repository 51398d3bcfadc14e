# SPDX-License-Identifier: Apache-2.0
"""SQL on the database of a test's cluster, whichever engine it is on."""

import contextlib
import sqlite3
import subprocess

KIND = ("domain, project_id, user_id, access_key, resource_group, type, status, result, image,"
        " cluster_mode")
# after rows of ended sessions were written past the store, which counts what it writes
COUNT_ENDED = f"""DELETE FROM session_totals; INSERT INTO session_totals ({KIND}, sessions)
    SELECT {KIND}, COUNT(*) FROM sessions WHERE terminated_at IS NOT NULL GROUP BY {KIND}"""


def sql(cluster, script):
    """Run statements while no manager serves; the first number of the last one's rows, or None."""
    uri = cluster.env.get("ALIQUOT_MANAGER_DATABASE")
    if uri:
        done = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", uri], input=script,
                              capture_output=True, text=True, check=True)
        return int(done.stdout) if done.stdout.strip() else None
    path = cluster.folder / "manager" / "aliquot.db"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        *before, last = filter(str.strip, script.split(";"))
        for statement in before:
            database.execute(statement)
        row = database.execute(last).fetchone()
        return row[0] if row else None
