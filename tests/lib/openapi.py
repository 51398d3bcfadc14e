# SPDX-License-Identifier: Apache-2.0
"""A manager's OpenAPI document, and which of its operations a request is."""

import re


def shape(path):
    """The path with all its parameters alike."""
    return re.sub(r"\{[^}]*\}", "{}", path)


class Document:
    def __init__(self, json):
        self.json = json
        self.operations = {(method.upper(), path): operation for path, item in json["paths"].items()
                           for method, operation in item.items()}

    def find(self, method, target):
        """The operation that a request is, or None: literal segments go before parameters."""
        wanted = target.partition("?")[0].split("/")
        best = None
        for there, path in self.operations:
            segments = path.split("/")
            if there != method or len(segments) != len(wanted):
                continue
            is_parameter = [segment.startswith("{") for segment in segments]
            if all(free or a == b or (a, b) == ("session", "kernel")
                   for free, a, b in zip(is_parameter, segments, wanted)):
                best = min(best or (is_parameter, path), (is_parameter, path))
        return best and self.operations[method, best[1]]

    def objections(self, method, target, reply):
        """What an answer of success has that the document does not say of it."""
        operation = self.find(method, target)
        if not operation:
            return "the document has no such operation"
        response = operation["responses"].get(str(reply.status))
        if not response:
            return f"the document has no status {reply.status} but {list(operation['responses'])}"
        types = [kind.partition(";")[0] for kind in response.get("content", {})] or [""]
        kind = (reply.headers.get("Content-Type") or "").partition(";")[0]
        return "" if kind in types else f"the document has {types}, not '{kind}'"
