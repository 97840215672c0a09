from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from deerflow_site.secrets import kept_secret
from tests.site.processes import BASE_DIR

if TYPE_CHECKING:
    from pathlib import Path


def test_a_secret_is_made_once_long_and_readable_by_its_owner_only(tmp_path: Path):
    secret = kept_secret(tmp_path, "key")
    assert len(secret) >= 64
    assert kept_secret(tmp_path, "key") == secret
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "secrets" / "key").stat().st_mode & 0o777 == 0o600


def test_processes_that_ask_at_the_same_moment_get_one_secret_and_leave_no_drafts(tmp_path: Path):
    ask = (
        "import sys; from pathlib import Path; from deerflow_site.secrets import kept_secret\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(kept_secret(Path(sys.argv[1]), 'key'))"
    )
    askers = [
        subprocess.Popen(
            [sys.executable, "-c", ask, str(tmp_path)],
            cwd=BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for asker in askers:
        assert asker.stdout is not None
        assert asker.stdout.readline() == "ready\n"
    secrets = {asker.communicate("go\n")[0] for asker in askers}
    assert len(secrets) == 1
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["key"]
