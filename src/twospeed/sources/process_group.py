"""How servers are started here: apart from the terminal's Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def own_group() -> dict[str, Any]:
    """Popen arguments that make a child the leader of a group of its own."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
