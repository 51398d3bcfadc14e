# SPDX-License-Identifier: Apache-2.0
"""The servers that tests of model services are made with do what real ones do; llama.cpp in a container
becomes ready, and answers."""

import http.client
import json

import model_server
from cluster import wait_for
from model_server import ask
from test_probe import Probed

HELLO = {"messages": [{"role": "user", "content": "Say hello"}], "max_tokens": 5, "temperature": 0}


def chat(port, **more):
    status, body = ask(port, "POST", "/v1/chat/completions", json.dumps({**HELLO, **more}))
    assert status == 200, body
    return json.loads(body)


def stream(port, **more):
    """The events of a streamed answer, and whether they came one by one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/v1/chat/completions", json.dumps({**HELLO, "stream": True, **more}))
    reply = connection.getresponse()
    assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/event-stream")
    events, pieces = b"", 0
    while got := reply.read1(65536):
        events += got
        pieces += 1
    connection.close()
    lines = [line[6:] for line in events.decode(errors="replace").split("\n")
             if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines], pieces > 1


def figure(port, name):
    text = ask(port, "GET", "/metrics")[1].decode()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def test_a_small_server():
    with model_server.started(token_delay=0.05, name="one") as port:
        assert ask(port, "GET", "/health")[0] == 200
        answer = chat(port)
        assert answer["choices"][0]["message"]["content"] == "t0 t1 t2 t3 t4"
        assert answer["usage"]["completion_tokens"] == 5
        events, came_one_by_one = stream(port, stream_options={"include_usage": True})
        text = "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1])
        assert text == "t0 t1 t2 t3 t4" and came_one_by_one
        assert events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] == 5
        assert ask(port, "POST", "/v1/chat/completions", "{")[0] == 400
        assert json.loads(ask(port, "GET", "/whoami")[1])["name"] == "one"


def test_it_caches_beginnings_of_prompts():
    with model_server.started() as port:
        words = " ".join(map(str, range(40)))
        first = chat(port, messages=[{"role": "user", "content": words}])
        again = chat(port, messages=[{"role": "user", "content": words + " more"}])
        assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 32


def test_requests_wait_and_end_with_their_clients():
    with model_server.started(slots=1, token_delay=0.05) as port:
        clients = []
        for _ in range(2):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            client.request("POST", "/v1/completions", json.dumps({"prompt": "x",
                                                                  "max_tokens": 10000}))
            clients.append(client)
            wait_for(lambda: figure(port, "vllm:num_requests_running") == 1, 30, "the request")
        wait_for(lambda: figure(port, "vllm:num_requests_waiting") == 1, 30, "the other one to wait")
        for client in clients:
            client.close()
        wait_for(lambda: figure(port, "openai_server_aborted_total") == 2, 30, "their end")
        assert figure(port, "vllm:num_requests_running") == 0


def test_what_is_under_way_ends_before_it_does():
    with model_server.started(token_delay=0.1) as port:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("POST", "/v1/completions", json.dumps({"prompt": "x", "max_tokens": 10}))
        wait_for(lambda: figure(port, "vllm:num_requests_running") == 1, 30, "the request")
    # it was told to end
    assert json.loads(client.getresponse().read())["usage"]["completion_tokens"] == 10


def test_it_can_be_told_to_fail():
    with model_server.started(ready_after=0.5) as port:
        assert ask(port, "GET", "/health")[0] == 503
        wait_for(lambda: ask(port, "GET", "/health")[0] == 200, 30, "it to be ready")
        assert ask(port, "POST", "/control", '{"health": 500}')[0] == 200
        assert ask(port, "GET", "/health")[0] == 500
        assert ask(port, "POST", "/control", '{"health": null, "hang": true}')[0] == 200
        assert ask(port, "GET", "/health", timeout=0.3)[0] == 0
        assert ask(port, "POST", "/control", '{"hang": false}')[0] == 200
        assert ask(port, "GET", "/health")[0] == 200


def test_llama_cpp_as_a_process():
    with model_server.llama_started() as port:
        first, second = chat(port), chat(port)
        assert first["usage"]["completion_tokens"] == 5
        assert first["choices"][0]["message"] == second["choices"][0]["message"]
        events, _ = stream(port, max_tokens=20)
        assert len(events) > 2
        assert figure(port, "llamacpp:tokens_predicted_total") >= 30


ASK = """
import json, urllib.request
body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}).encode()
request = urllib.request.Request("http://127.0.0.1:8000/v1/chat/completions", data=body,
                                 headers={"Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())
"""


def test_llama_cpp_in_a_container():
    with Probed("crun") as cluster:
        cluster.begin()
        cluster.image = model_server.llama_image(cluster)
        session = cluster.create("llama", command=model_server.llama_command(), mem="1g")
        assert cluster.wait_health(session, "ready")[-1] == ("ready", None)
        done = cluster.cli("exec", "llama", "--", "/usr/bin/python3", "-c", ASK)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["usage"]["completion_tokens"] == 5
        cluster.remove(session)
        cluster.stop()
        cluster.relay.close()
