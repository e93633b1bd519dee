"""``bamdp studio``: it says where it is, warns when it is not alone, and ends when told to."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import httpx
import pytest

import bamdp.studio
from bamdp.cli import main


def started(*arguments):
    command = [sys.executable, "-m", "bamdp", "studio", *arguments, "--port", "0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # who runs the tests may have it ignored
    )
    address = re.fullmatch(r"bamdp studio: (http://\S+)\n", process.stdout.readline())
    assert address is not None, process.stderr.read()
    return process, address[1]


def ended(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert out == ""
    return err


def test_it_prints_its_address_and_ends_with_ctrl_c():
    process, address = started("chain", "thompson", "--seed", "4", "--prior", "flat")
    first = httpx.get(f"{address}api/catalogue").json()["first"]
    assert (first["env"], first["planners"], first["seed"], first["prior"]) == (
        "chain",
        ["thompson"],
        4,
        "flat",
    )
    session = httpx.post(f"{address}api/sessions", json=first).json()["id"]
    assert session
    assert "warning" not in ended(process)
    assert process.returncode == 130


@pytest.mark.slow
def test_listening_to_others_is_warned_of():
    process, address = started("chain", "--host", "0.0.0.0")
    assert httpx.get(address.replace("0.0.0.0", "127.0.0.1")).status_code == 200
    assert "warning: listening on 0.0.0.0" in ended(process)


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "bamdp.studio.server", raising=False)
    monkeypatch.delattr(bamdp.studio, "server", raising=False)
    assert main(["studio", "chain", "thompson"]) == 2
    err = capsys.readouterr().err
    assert "fastapi" in err
    assert "pip install fastapi uvicorn" in err
    assert err.count("\n") == 1
