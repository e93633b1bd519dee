"""``bamdp theory``, end to end."""

from __future__ import annotations

import json
import math

import pytest

from bamdp.cli import main
from bamdp.theory import k_rule, mended_loss_bound, printed_loss_bound

PAPER = "theory --n-policies 4 --n-samples 4 --n-steps 18 --discount 0.95"

BAD = [
    (f"{PAPER} --n-step 3", "did you mean --n-steps"),
    ("theory --n-policies 0", "n_policies must be at least 1"),
    ("theory --n-samples -2", "n_samples must be at least 1"),
    ("theory --n-steps 2.5", "invalid int value"),
    ("theory --n-steps 100000000", "n_steps must be at least 1 and at most 1000000"),
    ("theory --n-stages 0", "n_stages must be at least 1"),
    ("theory --n-stages 100000000", "n_stages must be at least 1 and at most 10000"),
    ("theory --discount 1", "discount must be in [0, 1)"),
    ("theory --discount nan", "discount must be finite"),
    ("theory --delta 0", "delta must be above 0 and below 1"),
    ("theory --delta 1", "delta must be above 0 and below 1"),
    ("theory --epsilon0 -1", "epsilon0 must be finite, at least 0"),
    ("theory --c inf", "c must be finite"),
    ("theory --reward-range 0", "reward_range must be finite, above 0"),
    ("theory --n-actions 0", "n_actions must be at least 1"),
    ("theory --after 10", "name one with --env"),
    ("theory --env chian", "did you mean 'chain'"),
    ("theory --env chain --prior spars", "did you mean 'sparse'"),
    ("theory --env chain --after -1", "after must be at least 0"),
    ("theory --env chain --pairs 0", "pairs must be at least 1"),
    ("theory --env chain --episodes 0", "episodes must be at least 1"),
    ("theory --env chain --seed -1", "seed must be at least 0"),
    ("theory --output k.bmp", "must end in .png"),
    ("theory extra", "unknown argument 'extra'"),
]


@pytest.mark.parametrize(("command", "message"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_one_line_and_status_2(command, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_it_prints_terms_counts_the_rule_and_the_trade_off(capsys):
    assert main(PAPER.split()) == 0
    out = capsys.readouterr().out
    assert out.count("vacuous") >= 2
    assert "DSS, calls to the generative model             288" in out
    assert "every K from 20 on" in out
    assert "18 *" in out
    assert main(f"{PAPER} --c 1 --epsilon0 1".split()) == 0
    assert "no K satisfies the rule" in capsys.readouterr().out
    assert main("theory --n-samples 2000 --n-steps 8 --discount 0.5 --c 0.01".split()) == 0
    assert "meaningful" in capsys.readouterr().out


def test_json_has_what_the_functions_say(capsys):
    command = f"{PAPER} --n-stages 2 --c 0.1 --epsilon0 0.2 --delta 0.1 --reward-range 3 --json"
    assert main(command.split()) == 0
    found = json.loads(capsys.readouterr().out)
    belief = {"epsilon0": 0.2, "c": 0.1, "delta": 0.1}
    for name, loss_bound in (("printed", printed_loss_bound), ("mended", mended_loss_bound)):
        bound = loss_bound(4, 4, 18, 0.95, n_stages=2, reward_range=3.0, **belief)
        assert found[name] == {
            "terms": dict(bound.terms),
            "total": bound.total,
            "most": bound.range,
            "vacuous": bound.vacuous,
        }
    rule = k_rule(4, 4, 0.95, **belief)
    assert found["k_rule"]["satisfiable"] is rule.satisfiable is False
    assert found["calls"]["DSS, calls to the generative model"]["exact"] == 4896
    sparse = found["calls"]["sparse sampling, calls"]
    assert sparse["exact"] is None
    assert sparse["log10"] == pytest.approx(36 * math.log10(8), abs=0.1)


def test_trees_beyond_all_measure_are_said_to_be_so(capsys):
    assert main("theory --n-steps 100000 --n-stages 10000 --discount 0.5".split()) == 0
    assert capsys.readouterr().out.count("more than 10^10000") == 2
    assert main("theory --n-steps 100000 --json".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["calls"]["sparse sampling, calls"] == {"exact": None, "log10": None}


def test_constants_are_estimated_for_an_environment_and_what_is_given_stays(capsys):
    command = "theory --env chain --prior dirichlet:alpha=0.5 --n-steps 4 --pairs 20 --episodes 2 --json"
    assert main(command.split()) == 0
    before = json.loads(capsys.readouterr().out)
    assert before["estimated"] == ["c", "epsilon0", "n_actions", "reward_range"]
    assert 0.5 < before["c"] <= 2.0
    assert 0.0 < before["epsilon0"] <= 8.0
    assert main(f"{command} --after 2000 --epsilon0 0.25".split()) == 0
    after = json.loads(capsys.readouterr().out)
    assert after["epsilon0"] == 0.25
    assert after["c"] < before["c"]
    assert "epsilon0" not in after["estimated"]


def test_the_picture_is_drawn(capsys, tmp_path):
    target = tmp_path / "new" / "k.png"
    assert main([*PAPER.split(), "--output", str(target)]) == 0
    assert target.read_bytes().startswith(b"\x89PNG")
    assert str(target) in capsys.readouterr().err
    assert main([*PAPER.split(), "--json", "--output", str(target.with_suffix(".svg"))]) == 0
    json.loads(capsys.readouterr().out)
    assert "<svg" in target.with_suffix(".svg").read_text()
