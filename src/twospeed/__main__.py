"""`python -m twospeed`."""

from twospeed.cli.main import run_and_exit

run_and_exit()
