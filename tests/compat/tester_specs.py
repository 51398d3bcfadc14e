# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's own tester: its specs run, and each run is a line of JSON, [spec, parameters, why it
has failed]. The words are the file of settings, and specs if not all are wanted.
"""

import asyncio
import json
import os
import pathlib
import sys
import traceback

from ai.backend.test.contexts.tester import TestSpecMetaContext
from ai.backend.test.testcases.spec_manager import TestSpecManager
from ai.backend.test.testcases.testspecs import ROOT_TEST_SPECS
from ai.backend.test.tester.exporter import TestExporter
from ai.backend.test.tester.tester import Tester

LIMIT_SEC = 90  # of one run: some wait without a limit of their own


class Exporter(TestExporter):
    def __init__(self, parameters):
        self.parameters = parameters

    @classmethod
    async def create(cls, sub_name):
        return cls(sub_name)

    def say(self, why):
        spec = TestSpecMetaContext.current().spec_name
        print(json.dumps([spec, self.parameters, why]), flush=True)

    async def export_start(self):
        pass

    async def export_stage_done(self, stage):
        pass

    async def export_stage_exception(self, stage, exception):
        pass

    async def export_done(self):
        self.say(None)

    async def export_exception(self, exception):
        self.say("".join(traceback.format_exception(exception))[-6000:])


class LimitedTester(Tester):
    async def _run_single_spec(self, spec, sub_name=None):
        await asyncio.wait_for(super()._run_single_spec(spec, sub_name), LIMIT_SEC)


def main(settings, *wanted):
    os.chdir(os.environ["HOME"])
    specs = {spec.name: spec for spec in ROOT_TEST_SPECS.values()
             if not wanted or spec.name in wanted}
    tester = LimitedTester(TestSpecManager(specs), Exporter, pathlib.Path(settings))
    asyncio.run(tester.run_all())


main(*sys.argv[1:])
