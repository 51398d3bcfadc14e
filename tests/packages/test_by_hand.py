# SPDX-License-Identifier: Apache-2.0
"""Installed on a machine without systemd, a cluster is two commands away, and goes without a trace."""

import json
import time

RUN = """
aliquot up --dev > /root/up.log 2>&1 &
up=$!
until aliquot login --dev > /dev/null 2>&1; do sleep 0.1; done
aliquot run -r cpu=1 -r mem=64m -- echo hello
echo "output at $(date +%s.%N)"
aliquot run --image host -r cpu=1 -r mem=64m -- cat /proc/1/comm
aliquot sim --help > /dev/null
aliquot gpu --help > /dev/null
man_pages=$(dpkg -L aliquot aliquot-agent aliquot-manager | grep -c '/man[158]/.')
echo "$man_pages pages"
kill -INT $up
wait $up
"""
TRACES = r"find / -xdev -name '*aliquot*' -not -path '/proc/*' -not -path '/root/*'" \
         r" -not -path '/var/lib/apt/*' -not -path '/var/log/*'"


def test_install_run_and_purge(machine, debs, capsys):
    machine.put(debs, "/root/debs")
    machine.sh("apt-get -q update")
    before = machine.sh(TRACES)
    started = time.time()
    machine.install("--download-only /root/debs/*.deb")
    downloaded = time.time()
    said = machine.sh("apt-get -qy install /root/debs/*.deb > /root/apt.log; " + RUN)
    lines = said.splitlines()
    output = next(float(line.split()[2]) for line in lines if line.startswith("output at"))
    with capsys.disabled():
        print(json.dumps({"download_sec": round(downloaded - started, 1),
                          "install_to_output_sec": round(output - downloaded, 1)}))
    assert "hello" in lines and "aliquot-runner" in said
    machine.sh("apt-get -qy purge '*aliquot*'")
    assert machine.sh(TRACES) == before
