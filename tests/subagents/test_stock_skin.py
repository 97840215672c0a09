from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_the_pages_keep_the_same_rules_in_djangos_own_skin(tmp_path: Path):
    environment = {
        **{key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "TEST_TOTALS_FILE"}},
        "SUBAGENTS_ADMIN": "stock",
        "DEER_FLOW_HOME": str(tmp_path),
    }
    folder = Path(__file__).parent / "admin"
    command = [sys.executable, "-m", "pytest", str(folder), "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:]
    assert "passed" in ran.stdout
