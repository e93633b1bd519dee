"""The code of the guide to environments runs, block after block, and says what it says."""

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "environments.md"


def test_the_code_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.S)
    assert len(blocks) >= 6
    names = {}
    for block in blocks:
        exec(compile(block, GUIDE.name, "exec"), names)
    out = capsys.readouterr().out
    mean, success = (float(x) for x in out.splitlines()[0].split())
    assert mean > 0.8
    assert success > 0.5
    assert out.splitlines()[1:3] == ["episode 1 1.2", "lifetime 0 2.0"]
