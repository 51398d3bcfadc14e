#!/usr/bin/python3
"""The GraphQL API with the standard library: the agents, and what is free on each."""

import datetime
import hashlib
import hmac
import json
import os
import urllib.request

ENDPOINT = os.environ.get("ALIQUOT_ENDPOINT", "http://127.0.0.1:8081")
VERSION = "v9.20250722"
QUERY = """
query ($limit: Int!) {
  agent_list(limit: $limit, offset: 0) {
    items { id status available_slots occupied_slots }
  }
}
"""


def sign(method, path, date, host, content_type):
    """The signature of a request, as Backend.AI makes it."""
    def digest(key, text):
        return hmac.new(key, text.encode(), hashlib.sha256)

    text = "\n".join([method, path, date.isoformat(), "host:" + host,
                      "content-type:" + content_type, "x-backendai-version:" + VERSION,
                      hashlib.sha256(b"").hexdigest()])
    key = digest(os.environ["ALIQUOT_SECRET_KEY"].encode(), date.strftime("%Y%m%d")).digest()
    return digest(digest(key, host).digest(), text).hexdigest()


def ask(query, **variables):
    date = datetime.datetime.now(datetime.timezone.utc)
    host = ENDPOINT.partition("//")[2]
    signature = sign("POST", "/admin/gql", date, host, "application/json")
    credential = f"{os.environ['ALIQUOT_ACCESS_KEY']}:{signature}"
    request = urllib.request.Request(
        ENDPOINT + "/admin/gql", json.dumps({"query": query, "variables": variables}).encode(), {
            "Content-Type": "application/json", "Date": date.isoformat(), "Host": host,
            "X-BackendAI-Version": VERSION,
            "Authorization": f"BackendAI signMethod=HMAC-SHA256, credential={credential}"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


for agent in ask(QUERY, limit=100)["data"]["agent_list"]["items"]:
    offered, held = json.loads(agent["available_slots"]), json.loads(agent["occupied_slots"])
    for slot, amount in offered.items():
        print(f"{agent['id']}  {agent['status']}  {slot}: {held.get(slot, 0)} of {amount} in use")
