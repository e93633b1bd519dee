"""Wrong input is refused with a message that says what to do, and changes nothing."""

import itertools
import math
import re

import numpy as np
import pytest
from beliefs_arrays import content
from beliefs_exact import CASES, MODELS, A, S

from bamdp import (
    Belief,
    BetaBernoulli,
    Dirichlet,
    FiniteMDP,
    FiniteModels,
    KnownRewards,
    Mixture,
    SparseDirichlet,
)

NAN, INF = math.nan, math.inf


def refused(make, kind, *words):
    with pytest.raises(kind) as caught:
        make()
    message = str(caught.value)
    for word in words:
        assert re.search(word, message), f"{word!r} is not in {message!r}"


def stay(n_states=S, n_actions=A, **options):
    p = np.repeat(np.eye(n_states)[:, None], n_actions, axis=1)
    return FiniteMDP(p, np.zeros(n_states), **options)


BAD_PRIORS = [
    (lambda: Dirichlet(alpha=0.0), ValueError, "alpha must be finite, above 0"),
    (lambda: Dirichlet(alpha=-1), ValueError, "above 0.*got -1"),
    (lambda: Dirichlet(alpha=NAN), ValueError, "finite"),
    (lambda: Dirichlet(alpha=INF), ValueError, "finite"),
    (lambda: Dirichlet(alpha=1e200), ValueError, r"at most 1e\+100"),
    (lambda: Dirichlet(alpha="1"), TypeError, "alpha must be a number"),
    (lambda: Dirichlet(alpha=True), TypeError, "alpha must be a number"),
    (lambda: Dirichlet(alpha=None), TypeError, "alpha must be a number"),
    (lambda: Dirichlet(alpha=[1.0, 2.0]), ValueError, r"number, \[S, A\] or \[S, A, S\], got 1 dim"),
    (lambda: Dirichlet(alpha=[[1.0, 2.0], [1.0]]), TypeError, "alpha must be an array of real numbers"),
    (lambda: Dirichlet(alpha=[["a"]]), TypeError, "alpha must be an array of real numbers"),
    (lambda: Dirichlet(alpha=[[1.0, 0.0]]), ValueError, r"alpha\[0, 1\] must be above 0.*got 0"),
    (lambda: Dirichlet(alpha=[[NAN]]), ValueError, r"alpha\[0, 0\].*got nan"),
    (
        lambda: Dirichlet(alpha=[[[1.0, -1.0]]]),
        ValueError,
        "alpha of row 0, state 1 must be at least 0.*got -1",
    ),
    (lambda: Dirichlet(alpha=[[[INF]]]), ValueError, "alpha of row 0, state 0.*got inf"),
    (lambda: Dirichlet(alpha=np.zeros((1, 1, 1))), ValueError, "alpha of row 0 is all zero"),
    (lambda: SparseDirichlet(alpha=0.0), ValueError, "alpha must be finite, above 0"),
    (lambda: SparseDirichlet(alpha=NAN), ValueError, "alpha must be finite"),
    (lambda: SparseDirichlet(alpha=[0.2]), TypeError, "alpha must be a number"),
    (lambda: SparseDirichlet(beta=INF), ValueError, "beta must be finite"),
    (lambda: SparseDirichlet(beta="2"), TypeError, "beta must be a number"),
    (lambda: SparseDirichlet(p_k=()), ValueError, "p_k must have a positive entry"),
    (lambda: SparseDirichlet(p_k=(0.0, 0.0)), ValueError, "p_k must have a positive entry"),
    (lambda: SparseDirichlet(p_k=(1.0, -0.5)), ValueError, "every entry of p_k must be finite, at least 0"),
    (lambda: SparseDirichlet(p_k=(1.0, NAN)), ValueError, "every entry of p_k"),
    (lambda: SparseDirichlet(p_k=1.0), TypeError, "p_k must be a list"),
    (lambda: SparseDirichlet(p_k="uniform"), TypeError, "p_k must be a list"),
    (lambda: SparseDirichlet(p_k=[[1.0]]), TypeError, "every entry of p_k must be a number"),
    (lambda: FiniteModels([]), TypeError, "one or more FiniteMDP"),
    (lambda: FiniteModels(stay()), TypeError, "one or more FiniteMDP"),
    (lambda: FiniteModels([np.eye(2)]), TypeError, "one or more FiniteMDP"),
    (lambda: FiniteModels([stay(2), stay(3)]), ValueError, "differ in their numbers of states"),
    (lambda: FiniteModels([stay()], [1.0, 2.0]), ValueError, "one weight for each of the 1 members, got 2"),
    (lambda: FiniteModels([stay()], [0.0]), ValueError, "at least one weight must be positive"),
    (lambda: FiniteModels([stay()], [-1.0]), ValueError, "every weight must be finite, at least 0"),
    (lambda: FiniteModels([stay()], [NAN]), ValueError, "every weight"),
    (lambda: FiniteModels([stay()], 1.0), TypeError, "weights must be a list of 1 numbers"),
    (lambda: FiniteModels([stay()], "1"), TypeError, "weights must be a list"),
    (lambda: Mixture([]), TypeError, "one or more priors"),
    (lambda: Mixture(Dirichlet()), TypeError, "one or more priors"),
    (lambda: Mixture([Dirichlet]), TypeError, "one or more priors"),
    (lambda: Mixture([Dirichlet(), Dirichlet()], [1.0]), ValueError, "one weight for each of the 2 members"),
    (lambda: Mixture([Dirichlet()], [INF]), ValueError, "every weight must be finite"),
    (lambda: KnownRewards(1.0), ValueError, r"\[S\], \[S, A\] or \[S, A, S\], got 0 dim"),
    (lambda: KnownRewards([0.0, NAN]), ValueError, r"rewards\[1\] is nan; rewards must be finite"),
    (lambda: KnownRewards([[0.0], [INF]]), ValueError, r"rewards\[1, 0\] is inf"),
    (lambda: KnownRewards([[0.0], [1.0, 2.0]]), TypeError, "rewards must be an array of real numbers"),
    (lambda: KnownRewards("none"), TypeError, "rewards must be an array of real numbers"),
    (lambda: BetaBernoulli(a=0.0), ValueError, "a must be finite, above 0"),
    (lambda: BetaBernoulli(b=-1.0), ValueError, "b must be finite, above 0"),
    (lambda: BetaBernoulli(b=NAN), ValueError, "b must be finite"),
    (lambda: BetaBernoulli(a="1"), TypeError, "a must be a number"),
]


@pytest.mark.parametrize(("make", "kind", "words"), BAD_PRIORS)
def test_bad_parameters_are_refused_at_construction(make, kind, words):
    refused(make, kind, words)


BAD_WORLDS = [
    (lambda: Dirichlet().belief(0, 2), ValueError, "n_states must be at least 1, got 0"),
    (lambda: Dirichlet().belief(2, -1), ValueError, "n_actions must be at least 1"),
    (lambda: Dirichlet().belief(2.0, 1), TypeError, "n_states must be a whole number"),
    (lambda: Dirichlet().belief(2, True), TypeError, "n_actions must be a whole number"),
    (lambda: Dirichlet(alpha=np.ones((2, 1))).belief(3, 1), ValueError, r"\[2, 1\].*does not fit.*S=3, A=1"),
    (lambda: Dirichlet(alpha=np.ones((2, 1, 2))).belief(2, 2), ValueError, "does not fit"),
    (lambda: SparseDirichlet(p_k=(1, 1, 1)).belief(2, 1), ValueError, "names 3 sizes.*only 2 states"),
    (
        lambda: MODELS.belief(S + 1, A),
        ValueError,
        f"models have {S} states and {A} actions, the world has {S + 1}",
    ),
    (lambda: Mixture([Dirichlet(), MODELS]).belief(S, 1, rewards=np.zeros(S)), ValueError, "models have"),
    (lambda: Mixture([Dirichlet(), MODELS]).belief(S, A), ValueError, "rewards="),
    (lambda: Dirichlet().belief(2, 1, rewards=np.zeros(3)), ValueError, r"shape \[3\].*S=2, A=1"),
    (lambda: Dirichlet().belief(2, 1, rewards=np.zeros((2, 2))), ValueError, r"shape \[2, 2\]"),
    (lambda: Dirichlet().belief(2, 1, rewards=np.zeros((2, 1, 3))), ValueError, r"shape \[2, 1, 3\]"),
    (lambda: Dirichlet().belief(2, 1, rewards="bernoulli"), TypeError, "rewards must be an array"),
    (lambda: Dirichlet().belief(2, 1, terminal=[2]), ValueError, r"terminal names a state outside 0\.\.1"),
    (lambda: Dirichlet().belief(3, 1, terminal=[0, 0, 1]), ValueError, "make it one of booleans"),
    (lambda: Dirichlet().belief(2, 1, terminal=[True]), ValueError, r"terminal must have shape \[2\]"),
    (
        lambda: Dirichlet().belief(2, 1, action_mask=[[0.5], [1]]),
        TypeError,
        "action_mask must be bool",
    ),
    (
        lambda: Dirichlet().belief(2, 3, action_mask=[True]),
        ValueError,
        r"action_mask must have shape \[2, 3\]",
    ),
    (
        lambda: Dirichlet().belief(2, 1, action_mask=[[True], [False]]),
        ValueError,
        "state 1 has every action masked",
    ),
]


@pytest.mark.parametrize(("make", "kind", "words"), BAD_WORLDS)
def test_bad_worlds_are_refused(make, kind, words):
    refused(make, kind, words)


def test_what_is_known_may_be_written_shortly():
    long = Dirichlet().belief(3, 2, terminal=[False, True, False], action_mask=[[True, False]] * 3)
    short = Dirichlet().belief(3, 2, terminal=[1], action_mask=[True, False])
    assert all(np.array_equal(x, y) for x, y in zip(long.space, short.space))


def test_models_must_agree_on_terminal_states():
    prior = FiniteModels([stay(), stay(terminal=[1])])
    refused(lambda: prior.belief(S, A), ValueError, "agree on terminal states")


def test_models_cannot_be_asked_about_states_that_they_end_in():
    prior = FiniteModels([stay(terminal=[1])])
    assert prior.belief(S, A).space.terminal.tolist() == [False, True, False, False]
    refused(
        lambda: prior.belief(S, A, terminal=np.zeros(S, bool)), ValueError, "nothing about state 1, action 0"
    )
    more = prior.belief(S, A, terminal=np.array([False, True, True, False]))
    assert more.space.terminal.sum() == 2


def test_a_mixture_knows_what_its_components_know():
    mask = np.ones((S, A), bool)
    mask[2, 1] = False
    prior = Mixture([Dirichlet(), FiniteModels([stay(terminal=[1], action_mask=mask)])])
    space = prior.belief(S, A, rewards=np.zeros(S)).space
    assert space.terminal.tolist() == [False, True, False, False]
    assert np.array_equal(space.allowed, mask)


def snapshot(belief):
    arrays = [(name, x.tobytes()) for name, x in content((belief.transitions, belief.rewards, belief.space))]
    return arrays, belief.log_evidence, belief.n_observed


BAD_STEPS = [
    ((-1, 0, 0.0, 0), ValueError, r"state must be in 0\.\.3, got -1"),
    ((S, 0, 0.0, 0), ValueError, r"state must be in 0\.\.3, got 4"),
    ((0, A, 0.0, 0), ValueError, r"action must be in 0\.\.1, got 2"),
    ((0, -1, 0.0, 0), ValueError, "action must be in"),
    ((0, 0, 0.0, S), ValueError, r"next state must be in 0\.\.3, got 4"),
    ((0, 0, 0.0, -1), ValueError, "next state must be in"),
    ((0.0, 0, 0.0, 0), TypeError, "state must be a whole number"),
    ((0, None, 0.0, 0), TypeError, "action must be a whole number"),
    ((0, 0, 0.0, "1"), TypeError, "next state must be a whole number"),
    ((0, 0, NAN, 0), ValueError, "reward must be finite, got nan"),
    ((0, 0, INF, 0), ValueError, "reward must be finite, got inf"),
    ((0, 0, None, 0), TypeError, "reward must be a number, got None"),
    ((0, 0, "1", 0), TypeError, "reward must be a number, got '1'"),
    ((3, 0, 0.0, 0), ValueError, "state 3 is terminal.*begin a new episode"),
    ((1, 1, 0.0, 0), ValueError, "action 1 does not exist in state 1"),
]


def guarded(prior=None, **options):
    mask = np.ones((S, A), bool)
    mask[1, 1] = False
    prior = prior or SparseDirichlet()
    belief = prior.belief(S, A, terminal=[False, False, False, True], action_mask=mask, **options)
    belief.observe(0, 0, 0.0, 1)
    return belief


@pytest.mark.parametrize(("step", "kind", "words"), BAD_STEPS)
def test_a_bad_transition_is_refused_and_changes_nothing(step, kind, words):
    belief = guarded()
    before = snapshot(belief)
    refused(lambda: belief.observe(*step), kind, words)
    assert snapshot(belief) == before


@pytest.mark.parametrize(("step", "kind", "words"), BAD_STEPS[::3])
def test_one_bad_transition_among_many_refuses_them_all(step, kind, words):
    belief = guarded()
    before = snapshot(belief)
    good = (0, 1, 0.0, 2)
    with pytest.raises(kind):
        belief.observe_many(*([x, y, x] for x, y in zip(good, step)))
    assert snapshot(belief) == before


def test_the_first_bad_transition_among_many_is_named():
    belief = guarded()
    step = [0, 0], [0, 7], [0, 0], [0, 0]
    refused(lambda: belief.observe_many(*step), ValueError, r"transition 1: action must be in 0\.\..*got 7")
    refused(lambda: belief.observe_many([0], [0, 0], [0], [0]), ValueError, "vectors of one length")
    refused(lambda: belief.observe_many([[0]], [[0]], [[0]], [[0]]), ValueError, "vectors of one length")
    refused(lambda: belief.observe_many([0.5], [0], [0], [0]), TypeError, "transition 0: state")
    refused(
        lambda: belief.observe_many([0], [0], ["x"], [0]), TypeError, "r must be an array of real numbers"
    )


def test_a_state_that_ends_an_episode_has_no_successor_afterwards():
    belief = Dirichlet().belief(S, A)
    before = snapshot(belief)
    refused(
        lambda: belief.observe_many([0, 2], [0, 0], [0, 0], [2, 0], [True, False]),
        ValueError,
        "transition 1: state 2 is terminal",
    )
    assert snapshot(belief) == before
    belief.observe_many([2, 0], [0, 0], [0, 0], [1, 2], [False, True])  # before it ended it had one
    assert belief.space.terminal.tolist() == [False, False, True, False]
    refused(lambda: belief.observe(2, 0, 0.0, 0), ValueError, "state 2 is terminal")
    one = Dirichlet().belief(S, A)
    one.observe(0, 0, 0.0, 2, terminated=True)
    assert one.space.terminal[2]
    assert np.array_equal(one.mean().row(2, 0)[0], [])


def test_observing_nothing_is_allowed():
    belief = Dirichlet().belief(S, A)
    belief.observe_many([], [], [], [])
    assert belief.n_observed == 0


@pytest.mark.parametrize("name", ["full", "sparse p_k", "models", "own rewards"])
def test_impossible_transitions_are_refused_and_change_nothing(name):
    case = CASES[name]
    belief = case.belief()
    start = next(step for step in every_step() if case.evidence([step]) > 0)
    belief.observe(*start)
    impossible = [step for step in every_step() if case.evidence([start, step]) == 0]
    if name == "sparse p_k":  # after three outcomes the fourth is impossible
        s2s = [s2 for s2 in range(S) if s2 != start[3]]
        for s2 in s2s[:2]:
            belief.observe(*start[:3], s2)
        impossible = [(*start[:3], s2s[2])]
    assert impossible
    before = snapshot(belief)
    for step in impossible:
        refused(
            lambda step=step: belief.observe(*step), ValueError, "probability 0.*use a prior that allows it"
        )
        assert snapshot(belief) == before
        s, a, r, s2 = (np.array([x, y]) for x, y in zip(start, step))
        refused(
            lambda s=s, a=a, r=r, s2=s2: belief.observe_many(s, a, r, s2),
            ValueError,
            "transition 1: .*probability 0",
        )
        assert snapshot(belief) == before


def every_step():
    return itertools.product(range(S), range(A), (0.0, 1.0), range(S))


@pytest.mark.parametrize("reward", [0.5, -1.0, 2.0, 1e-9])
def test_bernoulli_rewards_other_than_0_and_1_are_refused(reward):
    belief = SparseDirichlet().belief(S, A, rewards=BetaBernoulli())
    before = snapshot(belief)
    refused(lambda: belief.observe(0, 0, reward, 0), ValueError, "0 or 1.*rescale them")
    refused(
        lambda: belief.observe_many([0, 0], [0, 0], [1.0, reward], [0, 0]), ValueError, "0 or 1.*rescale them"
    )
    assert snapshot(belief) == before


def test_questions_about_states_that_do_not_exist_are_refused():
    belief = Dirichlet().belief(S, A)
    for ask in (belief.predictive, belief.expected_reward):
        refused(lambda ask=ask: ask(S, 0), ValueError, r"state must be in 0\.\.3")
        refused(lambda ask=ask: ask(0, A), ValueError, r"action must be in 0\.\.1")
        refused(lambda ask=ask: ask(0, 0.5), TypeError, "action must be a whole number")
    refused(lambda: belief.weights, AttributeError, "belong to FiniteModels and Mixture")


@pytest.mark.parametrize("rng", ["seed", 1.5, np.zeros(4), np.random.RandomState(0)])
def test_what_is_no_generator_is_refused(rng):
    refused(lambda: Dirichlet().belief(S, A).sample(rng), TypeError, "rng must be a numpy Generator")


def test_a_generator_that_would_stand_still_is_refused():
    refused(lambda: Dirichlet().belief(S, A).sample(np.zeros(4, np.uint64)), ValueError, "four zeros")


def test_a_model_too_large_to_draw_is_refused_with_the_cure(monkeypatch):
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "0.0004")
    belief = Dirichlet(alpha=1.0).belief(200, 2)
    refused(lambda: belief.sample(0), ValueError, "SparseDirichlet, or with a smaller alpha")
    assert belief.mean().n_states == 200


def test_a_belief_that_cannot_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "1")
    for prior in (Dirichlet(), SparseDirichlet()):
        refused(
            lambda prior=prior: prior.belief(10**9, 4),
            ValueError,
            "a belief about 1000000000 states and 4 actions",
        )
    counts = np.broadcast_to(1.0, (10**5, 4, 10**5))
    refused(lambda: Dirichlet(alpha=counts), ValueError, "a copy of alpha of shape")


def test_priors_are_compared_by_value():
    array = np.ones((S, A, S))
    assert Dirichlet(alpha=array) == Dirichlet(alpha=array.tolist())
    assert hash(Dirichlet(alpha=array)) == hash(Dirichlet(alpha=array.copy()))
    assert Dirichlet(alpha=array) != Dirichlet(alpha=1.0)
    assert Dirichlet(alpha=1) == Dirichlet(alpha=1.0)
    assert SparseDirichlet(p_k=[1, 2]) == SparseDirichlet(p_k=np.array([1.0, 2.0]))
    assert FiniteModels([stay()]) == FiniteModels([stay()], [3.0])
    assert FiniteModels([stay()]) != FiniteModels([stay(), stay()])
    assert Mixture([Dirichlet()]) == Mixture((Dirichlet(),), [2.0])
    changed = array.copy()
    prior = Dirichlet(alpha=changed)
    changed[0, 0, 0] = 9.0
    assert prior == Dirichlet(alpha=array)


def test_a_belief_tells_what_it_is():
    assert "Sparse" in repr(Belief.__repr__(SparseDirichlet().belief(3, 2)))
    assert "after 0 transitions, S=3, A=2" in repr(SparseDirichlet().belief(3, 2))


def test_an_action_of_which_the_models_know_nothing_cannot_come_to_exist():
    mask = np.array([[True, False], [True, True]])
    model = FiniteMDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), action_mask=mask)
    belief = FiniteModels([model]).belief(2, 2)
    with pytest.raises(ValueError, match="the models say nothing about state 0, action 1"):
        belief.allow(0, [True, True])
    assert belief.space.allowed.tolist() == mask.tolist()
    belief.allow(1, [False, True])
    assert belief.space.allowed[1].tolist() == [False, True]
