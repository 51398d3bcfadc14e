# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI as it is on PyPI, in the wheels of its web server."""

import sys
import zipfile

import fetched

# Version of the wheel -> Python that it is for.
WHEELS = {"22.9.23": "3.10", "23.9.10": "3.11", "24.9.14": "3.12", "26.9.6": "3.13"}


def install(version):
    """The folder of its files, made once; a test that cannot have it is skipped."""
    with fetched.folder(f"webui/{version}") as (folder, is_new):
        if is_new:
            fetched.run(f"backend.ai-webserver {version}", [
                sys.executable, "-m", "pip", "-q", "download", "--no-deps", "--only-binary=:all:",
                f"--python-version={WHEELS[version]}", f"backend.ai-webserver=={version}", "-d", folder])
            with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
                for name in wheel.namelist():
                    if name.startswith("ai/backend/web/static/") and not name.endswith(".map"):
                        wheel.extract(name, folder)
            next(folder.glob("*.whl")).unlink()
    return folder / "ai" / "backend" / "web" / "static"
