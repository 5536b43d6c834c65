"""What can be asked, and what cannot; nothing is measured here."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from argparse import Namespace

import pytest

from twospeed import __version__
from twospeed.cli.command import all_commands
from twospeed.cli.main import status_of

COMMANDS = [command.name for command in all_commands()]
HEAVY = {"numpy", "asyncio", "rich", "psutil", "msgspec", "httptools", "ssl", "subprocess"}


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(twospeed, flag):
    said = twospeed(flag)
    assert (said.status, said.out, said.err) == (0, f"twospeed {__version__}\n", "")


def test_help_shows_every_command_and_every_exit_status(twospeed):
    said = twospeed("--help")
    assert said.status == 0
    assert "examples:" in said.out
    for name in COMMANDS:
        assert re.search(rf"^\s+{name}\s", said.out, re.MULTILINE)
    for status in (0, 1, 2, 3, 4, 70):
        assert re.search(rf"\b{status} [-a-z]", said.out.partition("exit status")[2])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_real_examples(twospeed, name):
    said = twospeed(name, "--help")
    assert said.status == 0
    assert f"  twospeed {name}" in said.out.partition("examples:")[2]


@pytest.mark.parametrize("argv", [["--help"], ["diagnose", "--help"]])
def test_help_fits_the_screen(twospeed, argv, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, twospeed(*argv).out.splitlines())) <= 80


@pytest.mark.parametrize("argv", [["--version"], ["--help"], *([name, "-h"] for name in COMMANDS)])
def test_help_waits_for_nothing_heavy(argv):
    code = (
        "import sys\n"
        "from twospeed.cli.main import main\n"
        f"status = main({argv!r})\n"
        f"sys.exit(' '.join(sorted({HEAVY!r} & set(sys.modules))) or status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "argv",
    [
        ["diagnoze"],
        ["diagnose", "--no-such-option"],
        ["diagnose", ":1", ":2"],
        ["diagnose", ":1", "--json", "--markdown"],
        ["diagnose", ":1", "--prompt-tokens", "0"],
        ["diagnose", ":1", "--prompt-tokens", "many"],
        ["diagnose", ":1", "--wait-goal", "-1"],
        ["diagnose", ":1", "--stream-goal", "nan"],
        ["diagnose", ":1", "--budget", "inf"],
        ["diagnose", ":1", "--timeout", "0"],
    ],
)
def test_command_lines_that_the_parser_refuses(twospeed, argv):
    said = twospeed(*argv)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("usage: twospeed")
    assert ": error: " in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("argv", "about"),
    [
        ([":1", "--embedded"], "URL or --embedded"),
        ([":1", "--engine", "threads=2"], "URL or --embedded"),
        (["--from", "run.jsonl", ":1"], "--from"),
        (["--from", "run.jsonl", "--embedded"], "--from"),
        (["--from", "run.jsonl", "--save", "other.jsonl"], "--from"),
        (["--embedded", "--engine", "no-such-flag=1"], "no-such-flag"),
        ([":1", "--fail-on", "prefil"], "prefil"),
        ([":1", "--runtime", "no-such-runtime"], "no-such-runtime"),
        ([":1", "--api-key", "naïve"], "key"),
        (["ftp://127.0.0.1"], "ftp"),
        (["http://127.0.0.1:99999"], "port"),
        (["http://me:secret@127.0.0.1"], "--api-key"),
        ([""], "not an address"),
    ],
)
def test_command_lines_that_contradict_themselves(twospeed, argv, about):
    said = twospeed("diagnose", *argv)
    assert said.status == 2
    assert about in said.complaint
    assert "secret" not in said.err


@pytest.mark.parametrize(
    "form",
    [
        "{port}",
        ":{port}",
        "127.0.0.1:{port}",
        "localhost:{port}",
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}/v1/chat/completions",
    ],
)
@pytest.mark.parametrize("command", [["diagnose"], []])
def test_ways_to_write_an_address(twospeed, fake, form, command):
    locked = fake(key="sesame")
    said = twospeed(*command, form.format(port=locked.port))
    assert said.status == 3
    assert "401" in said.complaint
    assert "GET /v1/models" in locked.asked


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")
def test_ipv6(twospeed, fake):
    locked = fake(key="sesame", host="::1")
    for form in (f"http://[::1]:{locked.port}", f"[::1]:{locked.port}"):
        said = twospeed(form)
        assert f"http://[::1]:{locked.port} refuses access" in said.complaint


def test_out_is_checked_before_anything_is_sent(twospeed, fake, tmp_path):
    runtime = fake()
    for path, why in ((tmp_path, "directory"), (tmp_path / "none" / "r.md", "no directory")):
        said = twospeed.diagnose(runtime.url, "--out", path)
        assert said.status == 3
        assert why in said.complaint
    assert runtime.asked == []


def test_save_does_not_overwrite_what_it_did_not_write(twospeed, fake, tmp_path):
    runtime, precious = fake(), tmp_path / "thesis.tex"
    precious.write_text("ten years of work")
    said = twospeed.diagnose(runtime.url, "--save", precious)
    assert said.status == 3
    assert "not overwritten" in said.complaint
    assert precious.read_text() == "ten years of work"
    assert runtime.asked == []


@pytest.mark.parametrize(
    ("content", "about"),
    [(None, "No such file"), (b"", "is empty"), (b"{}\n", "not a twospeed record file")],
)
def test_from_a_file_that_is_none(twospeed, tmp_path, content, about):
    path = tmp_path / "run.jsonl"
    if content is not None:
        path.write_bytes(content)
    said = twospeed("diagnose", "--from", path)
    assert said.status == 3
    assert about in said.complaint


class Broken:
    """A command with a fault of its own."""

    def run(self, args):
        raise ZeroDivisionError("by zero")


def test_a_fault_of_our_own(capsys):
    assert status_of(Namespace(command=Broken(), debug=False)) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "ZeroDivisionError: by zero" in err
    assert "--debug" in err
    with pytest.raises(ZeroDivisionError):
        status_of(Namespace(command=Broken(), debug=True))
