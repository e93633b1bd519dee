"""FiniteMDP: every input form gives the same model, and bad input is named and refused."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import bamdp
from bamdp._kernels.rows import Rows, Space
from bamdp.mdp import FiniteMDP, load_model
from mdp_models import random_mdp, with_background

P = np.array([[[0.5, 0.5, 0], [0, 0, 1.0]], [[1, 0, 0], [0.2, 0.3, 0.5]], [[0, 1, 0], [0, 0, 1]]])
R = np.arange(6.0).reshape(3, 2)


def as_sparse_list(p, kind):
    return [kind(p[:, a, :]) for a in range(p.shape[1])]


@pytest.mark.parametrize(
    "transitions",
    [
        P,
        P.tolist(),
        as_sparse_list(P, sp.csr_array),
        as_sparse_list(P, sp.coo_matrix),
        tuple(as_sparse_list(P, sp.csc_array)),
        sp.csr_array(P.reshape(6, 3)),
        sp.lil_matrix(P.reshape(6, 3)),
    ],
    ids=["dense", "nested", "csr", "coo", "csc", "stacked", "lil"],
)
def test_every_array_form_gives_the_same_model(transitions):
    mdp = FiniteMDP(transitions, R)
    assert mdp == FiniteMDP(P, R)
    np.testing.assert_array_equal(mdp.dense(), P)


def test_layout_is_contiguous_rows_of_plain_types():
    mdp = FiniteMDP(P, R)
    types = (np.int64, np.int32, np.float64, np.float64, np.float64)
    assert all(x.dtype == t and x.flags.c_contiguous for x, t in zip(mdp.rows, types))
    assert mdp.rows.span[0, 0] == 0
    np.testing.assert_array_equal(mdp.rows.span[1:, 0], mdp.rows.span[:-1, 1])
    assert mdp.rows.index.size == np.count_nonzero(P)
    np.testing.assert_array_equal(mdp.row(1, 1)[0], [0, 1, 2])
    np.testing.assert_array_equal(mdp.row(1, 1)[1], [0.2, 0.3, 0.5])


def test_sparse_duplicates_are_summed():
    double = sp.coo_array(([0.5, 0.5, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(FiniteMDP([double], np.zeros(2)).dense()[:, 0], [[0, 1], [1, 0]])


def test_a_large_sparse_model_stays_sparse():
    n = 200_000
    step = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    mdp = FiniteMDP([step, step], np.ones(n))
    assert sum(x.nbytes for x in mdp.rows) < 30 * 2 * n * 2


@pytest.mark.parametrize("shape", ["s", "sa", "sas"])
def test_rewards_of_each_shape_give_their_expectation(shape):
    rng = np.random.default_rng(0)
    full = rng.normal(size=P.shape)
    given_rewards = {"s": full[:, 0, 0], "sa": full[..., 0], "sas": full}[shape]
    mdp = FiniteMDP(P, given_rewards)
    wide = given_rewards.reshape(given_rewards.shape + (1,) * (3 - given_rewards.ndim))
    np.testing.assert_allclose(mdp.expected_rewards, (P * np.broadcast_to(wide, P.shape)).sum(axis=2))
    np.testing.assert_array_equal(mdp.rewards, given_rewards)


def test_background_counts_in_expected_rewards_and_rows():
    rng = np.random.default_rng(1)
    model, _ = with_background(rng, 6, 2)
    full = rng.normal(size=(6, 2, 6))
    again = FiniteMDP.from_rows(model.rows, model.space, full)
    np.testing.assert_allclose(again.expected_rewards, (model.dense() * full).sum(axis=2))
    for s, a in np.ndindex(6, 2):
        states, probs = model.row(s, a)
        np.testing.assert_allclose(np.bincount(states, probs, minlength=6), model.dense()[s, a])
        assert probs.sum() == pytest.approx(1.0)


def test_terminal_and_masked_rows_are_empty_whatever_was_written_there():
    p = P.copy()
    p[2] = np.nan
    p[0, 1] = 7.0
    r = R.copy()
    r[2] = np.nan
    r[0, 1] = -np.inf
    mask = np.array([[True, False], [True, True], [True, True]])
    mdp = FiniteMDP(p, r, terminal=[2], action_mask=mask)
    assert mdp.row(2, 0)[0].size == mdp.row(0, 1)[0].size == 0
    np.testing.assert_array_equal(mdp.expected_rewards, [[0, 0], [2, 3], [0, 0]])
    np.testing.assert_array_equal(mdp.dense()[1], P[1])


def test_models_cannot_be_changed():
    mdp = FiniteMDP(P, R, state_labels=["a", "b", "c"])
    with pytest.raises(AttributeError, match="immutable"):
        mdp.rewards = R
    for array in (mdp.rewards, mdp.expected_rewards, mdp.terminal, mdp.action_mask):
        with pytest.raises(ValueError):
            array[0] = 1


def test_input_arrays_are_not_shared_with_the_model():
    p, r = P.copy(), R.copy()
    mdp = FiniteMDP(p, r)
    p[:] = 0.0
    r[:] = 9.0
    assert mdp == FiniteMDP(P, R)
    assert p.flags.writeable
    assert r.flags.writeable


def test_equality_is_by_value_and_ignores_the_order_of_entries():
    space = Space(np.zeros(2, bool), np.ones((2, 1), bool))
    span = np.array([[0, 2], [2, 3]])

    def build(index, prob):
        return FiniteMDP.from_rows(
            Rows(span, np.array(index), np.array(prob), np.zeros(2), np.zeros(2)), space
        )

    one, two = build([0, 1, 0], [0.25, 0.75, 1.0]), build([1, 0, 0], [0.75, 0.25, 1.0])
    assert one == two
    assert hash(one) == hash(two)
    assert one != build([0, 1, 0], [0.5, 0.5, 1.0])
    assert one != FiniteMDP(one.dense(), [0, 0], state_labels=["a", "b"])
    assert one != "a model"


def test_from_rows_leaves_its_input_alone():
    rng = np.random.default_rng(2)
    base, _ = with_background(rng, 5, 2)
    before = [x.copy() for x in base.rows]
    terminal = np.array([False, True, False, False, False])
    cut = FiniteMDP.from_rows(base.rows, Space(terminal, base.space.allowed))
    assert cut.rows.background[2] == cut.rows.reward[3] == 0.0
    assert all(np.array_equal(x, y) for x, y in zip(base.rows, before))


def test_rows_not_drawn_are_refused_unless_they_are_never_used():
    span = np.array([[-1, -1], [0, 1]])
    rows = Rows(span, np.array([0], np.int32), np.ones(1), np.zeros(2), np.zeros(2))
    allowed = np.ones((2, 1), bool)
    with pytest.raises(ValueError, match="draw it first"):
        FiniteMDP.from_rows(rows, Space(np.zeros(2, bool), allowed))
    assert FiniteMDP.from_rows(rows, Space(np.array([True, False]), allowed)).row(0, 0)[0].size == 0


@pytest.mark.parametrize("background", [False, True])
def test_save_and_load_give_the_same_model_back(tmp_path, background):
    rng = np.random.default_rng(3)
    mask = np.array([[True, False]] * 4)
    if background:
        mdp, _ = with_background(rng, 4, 2, mask=mask)
    else:
        mdp = random_mdp(rng, 4, 2, 0.5, terminal=[3], action_mask=mask, state_labels=["ä", "b", "c", "Ende"])
    path = tmp_path / "model.bin"
    mdp.save(path, start=2)
    again, start = load_model(path)
    assert again == mdp == FiniteMDP.load(path) == pickle.loads(pickle.dumps(mdp))
    assert again.state_labels == mdp.state_labels
    assert start == 2
    with np.load(path, allow_pickle=False) as archive:
        assert "rewards" in archive.files


def test_a_users_plain_file_is_read(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, transitions=P, rewards=R, start=np.array([0.5, 0.5, 0]), terminal=np.array([2]))
    mdp, start = load_model(path)
    assert mdp == FiniteMDP(P, R, terminal=[2])
    np.testing.assert_array_equal(start, [0.5, 0.5, 0])


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"transitions": P}, "rewards missing"),
        ({"rewards": R}, "transitions missing"),
        ({}, "found: nothing"),
        ({"transitions": P[:, :, :2], "rewards": R}, r"must have shape \[S, A, S\]"),
        ({"transitions": P, "rewards": R, "start": 3}, r"start must be in 0\.\.2"),
        ({"transitions": P, "rewards": R, "start": np.ones(3)}, "start must be .* sum to 1"),
        ({"indptr": np.array([0, 1]), "rewards": R}, "next_states and probs missing"),
        ({"transitions": np.array([None]), "rewards": R}, "not a model file"),
    ],
)
def test_wrong_files_are_refused_by_name(tmp_path, arrays, message):
    path = tmp_path / "wrong.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=f"wrong.npz.*{message}"):
        load_model(path)


def test_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file"):
        load_model(tmp_path / "none.npz")
    text = tmp_path / "text.npz"
    text.write_text("not an archive")
    np.save(tmp_path / "one.npy", R)
    for path, message in ((text, "not a model file"), (tmp_path / "one.npy", "not a model file")):
        with pytest.raises(ValueError, match=message):
            load_model(path)


def changed(where, value):
    p = P.copy()
    p[where] = value
    return p


@pytest.mark.parametrize(
    "transitions, options, message",
    [
        (changed((1, 1), [0.2, 0.2, 0.5]), {}, r"row \(state 1, action 1\) sums to 0\.9, not 1; divide"),
        (changed((0, 0), 0.0), {}, r"row \(state 0, action 0\) sums to 0, not 1"),
        (changed((2, 0), [-0.5, 1.5, 0]), {}, r"row \(state 2, action 0\) has probability -0\.5 for state 0"),
        (changed((2, 1), np.nan), {}, r"row \(state 2, action 1\) has probability nan"),
        (changed((1, 0, 1), np.inf), {}, r"row \(state 1, action 0\) has probability inf"),
        (P[0], {}, r"must have shape \[S, A, S\], got \[2, 3\]"),
        (np.swapaxes(P, 0, 1), {}, "swapaxes"),
        (
            [sp.eye_array(3), sp.eye_array(4)],
            {},
            r"a list of A matrices \[S, S\], got \[\(3, 3\), \(4, 4\)\]",
        ),
        (sp.eye_array(3, 2), {}, r"\[S\*A, S\]"),
        (P, {"rewards": R[:2]}, r"rewards must have shape \[3\] or \[3, 2\] or \[3, 2, 3\], got \[2, 2\]"),
        (
            P,
            {"rewards": np.where(R == 3, np.nan, R)},
            r"row \(state 1, action 1\) has a reward that is not finite",
        ),
        (P, {"rewards": None}, "rewards are missing"),
        (P, {"terminal": np.zeros(2, bool)}, r"terminal must have shape \[3\]"),
        (P, {"terminal": [3]}, r"outside 0\.\.2"),
        (P, {"action_mask": np.ones((2, 2), bool)}, r"action_mask must have shape \[3, 2\]"),
        (P, {"action_mask": [[True, True], [False, False], [True, True]]}, "state 1 has every action masked"),
        (P, {"state_labels": ["a"]}, "state_labels must have 3 entries, got 1"),
        (P, {"action_labels": ["a"] * 3}, "action_labels must have 2 entries, got 3"),
    ],
)
def test_bad_arrays_are_refused_with_the_first_bad_row(transitions, options, message):
    with pytest.raises(ValueError, match=message):
        FiniteMDP(transitions, **{"rewards": R, **options})


@pytest.mark.parametrize(
    "transitions, options, message",
    [
        ([[[1, 0], [1]]], {}, "transitions must be an array of real numbers with rows of one length"),
        (P.astype(complex), {}, "real numbers"),
        (P, {"rewards": np.array(["a", "b", "c"])}, "rewards must be an array of real numbers"),
        (P, {"terminal": [0.5]}, "bool mask"),
        (P, {"action_mask": np.full((3, 2), 0.5)}, "action_mask must be bool"),
        (P, {"state_labels": "abc"}, "sequence of 3 strings"),
    ],
)
def test_arrays_of_another_type_are_refused(transitions, options, message):
    with pytest.raises(TypeError, match=message):
        FiniteMDP(transitions, **{"rewards": R, **options})


def test_rows_within_tolerance_are_kept_as_given():
    p = changed((1, 1), [0.2, 0.3, 0.5 + 5e-9])
    assert FiniteMDP(p, R).row(1, 1)[1][2] == 0.5 + 5e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 4), st.floats(0.1, 1.0))
def test_dense_and_sparse_agree_on_random_models(seed, n_states, n_actions, fill):
    mdp = random_mdp(np.random.default_rng(seed), n_states, n_actions, fill)
    p = mdp.dense()
    stacked = FiniteMDP(sp.csr_array(p.reshape(-1, n_states)), mdp.rewards)
    assert stacked == mdp == FiniteMDP.from_arrays(mdp.arrays()) == FiniteMDP(p, mdp.rewards)


def test_rewards_that_are_never_paid_may_be_anything():
    ends = FiniteMDP([[[0, 1.0]], [[0, 0]]], [0.0, np.nan], terminal=[1])
    assert ends == ends
    assert np.isfinite(ends.rewards).all()
    masked = FiniteMDP(np.full((2, 2, 2), 0.5), [[1.0, np.inf], [2.0, 3.0]], action_mask=[[1, 0], [1, 1]])
    assert masked == pickle.loads(pickle.dumps(masked))
    belief = bamdp.Dirichlet().belief(2, 2, rewards=masked.rewards, action_mask=masked.action_mask)
    assert belief.expected_reward(0, 0) == 1.0


def test_both_kinds_of_file_read_terminal_states_and_masks_alike():
    mdp = FiniteMDP(np.full((3, 2, 3), 1 / 3), [0.0, 1.0, 2.0])
    arrays = mdp.arrays()
    for name in ("terminal", "action_mask"):
        del arrays[name]
    assert FiniteMDP.from_arrays(arrays) == mdp
    assert FiniteMDP.from_arrays({**arrays, "terminal": np.array([1])}).terminal.tolist() == [
        False,
        True,
        False,
    ]
    with pytest.raises(TypeError, match="action_mask must be bool"):
        FiniteMDP.from_arrays({**arrays, "action_mask": np.full((3, 2), 0.5)})
    wrong = [
        ("rewards", 0.0),
        ("rewards", np.zeros(4)),
        ("indptr", arrays["indptr"] + 0.6),
        ("probs", np.zeros(3)),
    ]
    for name, value in wrong:
        with pytest.raises(ValueError, match=r"indptr|probs"):
            FiniteMDP.from_arrays({**arrays, name: value})


@pytest.mark.parametrize(
    ("transitions", "rewards", "what"),
    [
        (
            np.broadcast_to(1e-5, (10**5, 4, 10**5)),
            [0.0],
            r"a copy of transitions of shape \[100000, 4, 100000\]",
        ),
        (
            [[[1.0]]],
            np.broadcast_to(1e-5, (10**5, 4, 10**5)),
            r"a copy of rewards of shape \[100000, 4, 100000\]",
        ),
        (np.broadcast_to(1e-3, (1000, 4, 1000)), [0.0], "1000 states, 4 actions and 4000000 entries"),
        (sp.coo_array((10**9, 10**9)), [0.0], "a model of 1000000000 states, 1 actions"),
        ([sp.coo_array((10**9, 10**9))] * 2, [0.0], "a model of 1000000000 states, 2 actions"),
        ({0: {10**12: [(1.0, 0, 0.0, False)]}}, None, "a model of 1 states, 1000000000001 actions"),
    ],
    ids=["dense", "rewards", "many-entries", "stacked", "list", "table"],
)
def test_a_model_that_cannot_fit_is_refused_before_it_is_made(monkeypatch, transitions, rewards, what):
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "0.1")
    with pytest.raises(ValueError, match=what + r".* would need about .* GiB of memory"):
        FiniteMDP(transitions, rewards)
