# SPDX-License-Identifier: Apache-2.0
"""A cluster whose nodes have mock GPUs, with the proxy and a web server, as the console needs it."""

import os

from images import Layout, archive, folder, programs
from runtimes import settings_of
from test_proxy import Proxied
from web import Webbed

# As in document 002: 8 GB that are 2 fGPU.
CARDS = """\
allocation_mode = "fractional"
unit_mem = "4G"
unit_proc = 40
"""
CARD = """\
[[devices]]
mother_uuid = "GPU-513a5f0e-7721-4b6c-9d10-00000000{node:02d}{card:02d}"
model_name = "Mock GPU"
subproc_count = 80
memory_size = "8G"
"""
PROGRAMS = ("bash", "sh", "sleep", "cat", "env", "seq", "printf", "stty", "id")


class ConsoleCluster(Proxied, Webbed):
    def __init__(self, **settings):
        super().__init__(**{**settings_of("crun"), "ALIQUOT_IMAGE_ALLOW": "* oci:/",
                            "ALIQUOT_IMAGE_KEEP_FREE": "0", "ALIQUOT_RESOURCE_CPUS": "8",
                            **settings})

    def start(self, nodes=1, cards=1):
        self.start_manager()
        for node in range(1, nodes + 1):
            mock = self.folder / f"node{node}.toml"
            mock.write_text(CARDS + "".join(CARD.format(node=node, card=card) for card in range(cards)))
            os.chmod(mock, 0o644)
            self.start_agent(f"node{node}", ALIQUOT_ACCELERATORS_MOCK=str(mock))
        self.start_proxy(ALIQUOT_PROXY_DOMAIN="localhost")
        self.start_web()
        self.layout = Layout(self.folder / "layout")
        self.layout.image("shell", [archive([*programs(*PROGRAMS), folder("tmp", mode=0o1777)])])

    def alias(self, name, image):
        reply = self.client().send("PUT", f"/aliquot/v1/image-aliases/{name}",
                                   {"image": self.layout.reference(image)})
        assert reply.status == 204, reply
