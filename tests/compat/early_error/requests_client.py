# SPDX-License-Identifier: Apache-2.0
"""requests: POST bodies to a path that is not there; the same session is served afterwards."""

import sys

import requests


def pieces(size):
    for at in range(0, size, 16384):
        yield bytes(min(16384, size - at))


with requests.Session() as session:
    for size in map(int, sys.argv[2:]):
        for body in (bytes(size), pieces(size), pieces(size)):
            answer = session.post(sys.argv[1] + "/no/such/path", data=body)
            assert answer.json()["title"]
            print(size, answer.status_code)
            print(size, session.get(sys.argv[1] + "/").status_code)
