"""The import table of the rooms, and what may print."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "twospeed"

MAY_IMPORT = {
    "records": set(),
    "wire": {"records"},
    "runtimes": {"records", "wire"},
    "sources": {"records", "wire", "runtimes"},
    "fits": {"records"},
    "limits": {"records"},
    "findings": {"records", "fits", "limits"},
    "cures": {"records", "fits", "limits", "findings"},
    "report": {"records", "fits", "limits", "findings", "cures"},
    "web": {"records", "report"},
    "simulator": {"records", "limits"},
}
ROOMS = sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists())
MODULES = sorted(path for path in ROOT.rglob("*.py"))


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the room they reach into"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if (
                parts[0] == "twospeed"
                and len(parts) > 1
                and parts[1] in MAY_IMPORT | {"cli": set()}
            ):
                rooms.add(parts[1])
    return rooms


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_imports_only_what_its_room_may(path: Path):
    parts = path.relative_to(ROOT).parts
    if len(parts) == 1 or parts[0] == "cli":
        return
    room = parts[0]
    assert imported_rooms(path) - {room} <= MAY_IMPORT[room]


def test_every_room_is_in_the_table():
    assert set(ROOMS) - {"cli"} <= set(MAY_IMPORT)


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "cli"])
def test_only_the_command_line_prints(room: str):
    for path in (ROOT / room).rglob("*.py"):
        if path.name in {"child.py", "probe_child.py"}:
            continue  # processes of their own, whose standard output is their protocol
        calls = [
            node.lineno
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ]
        assert not calls, f"{path.relative_to(ROOT)} prints at line {calls[0]}"


def test_room_packages_import_nothing():
    for path in ROOT.rglob("__init__.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)], path
