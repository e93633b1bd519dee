"""Appendix B's duality: drawing a model and then outcomes is drawing outcomes with updates in between.

Fixed seeds. Every test here raises a false alarm with probability at most 1e-4 over the choice of its seed,
so the whole file with probability below 2e-2.
"""

import itertools

import numpy as np
import pytest
from beliefs_exact import CASES, A, S
from beliefs_kernels import advance_many, draw_many, sample_block, sample_many, sum_of_squares
from scipy import stats

from bamdp import Dirichlet, SparseDirichlet
from bamdp._kernels.random import new_rng

FALSE_ALARM = 1e-4
N = 40_000
HISTORIES = {"no data": [], "some data": [(0, 0, 1, 1), (0, 0, 0, 1), (0, 0, 0, 0), (1, 0, 1, 2)]}
# Three steps in one row, in two rows (which finite sets and mixtures tie together), in two actions of one state.
PATHS = {
    "one row": [(0, 0)] * 3,
    "two rows": [(0, 0), (1, 0), (1, 0)],
    "two actions": [(0, 0), (0, 1), (0, 1)],
}


def prepared(name, history):
    """A case, data that it allows, the belief after them."""
    case = CASES[name]
    data = []
    for step in HISTORIES[history]:
        if case.evidence([*data, step]) > 0:
            data.append(step)
    return case, data, case.belief(data)


def law(case, data, path):
    """Exact probabilities of all sequences of next states along ``path``, float64 [S^len(path)]."""

    def total(seq):
        steps = [(s, a, 0.0, s2) for (s, a), s2 in zip(path, seq)]
        return case.exact([*data, *steps])

    before = case.exact(data)
    return np.array([float(total(seq) / before) for seq in itertools.product(range(S), repeat=len(path))])


def agree(counts, p):
    """Whether counts have this law: chi-square over the cells expected at least 5 times, the rest as one."""
    assert counts[p == 0.0].sum() == 0, "an impossible sequence was drawn"
    n = counts.sum()
    big = p * n >= 5.0
    seen = np.append(counts[big], counts[~big].sum())
    want = np.append(p[big] * n, p[~big].sum() * n)
    seen, want = seen[want > 0.0], want[want > 0.0]
    if len(want) == 1:
        return True
    return stats.chi2.sf(((seen - want) ** 2 / want).sum(), len(want) - 1) > FALSE_ALARM


CASES_BY_TRANSITIONS = [name for name in CASES if name != "own rewards"]  # there a reward must be named too


def design(**axes):
    """All combinations of the axes; the quick suite runs one for each value of the first, the others in turn."""
    first, *others = axes.values()
    quick = [(value, *(list(axis)[i % len(axis)] for axis in others)) for i, value in enumerate(first)]
    every = [
        pytest.param(*c, marks=[] if c in quick else [pytest.mark.slow])
        for c in itertools.product(*axes.values())
    ]
    return pytest.mark.parametrize(tuple(axes), every)


every = design(name=CASES, history=HISTORIES)
paths = design(name=CASES_BY_TRANSITIONS, history=HISTORIES, path=PATHS)


@paths
def test_outcomes_of_one_sampled_model_have_the_law_of_updated_predictives(name, history, path):
    case, data, belief = prepared(name, history)
    rows = np.array([s * A + a for s, a in PATHS[path]])
    counts, mean = np.zeros(S**3, np.int64), np.zeros(S)
    sample_many(
        belief.transitions, rows, new_rng(1), N, S, np.empty(64, np.int32), np.empty(64), counts, mean
    )
    assert agree(counts, law(case, data, PATHS[path]))


@paths
def test_advancing_has_the_law_of_updated_predictives(name, history, path):
    case, data, belief = prepared(name, history)
    belief.reserve(3)
    rows = np.array([s * A + a for s, a in PATHS[path]])
    counts = np.zeros(S**3, np.int64)
    advance_many(belief.transitions, rows, new_rng(2), N, S, counts)
    assert agree(counts, law(case, data, PATHS[path]))


@every
def test_drawing_follows_the_predictive(name, history):
    _, _, belief = prepared(name, history)
    out = np.zeros(S + 1, np.int64)
    out[0] = N
    draw_many(belief.transitions, 0, new_rng(3), out)
    assert agree(out[1:], belief.predictive(0, 0))


@every
def test_the_mean_of_sampled_models_is_the_predictive(name, history):
    """``Belief.sample`` itself, all rows and rewards: z-scores of 40 entries, Bonferroni."""
    _, _, belief = prepared(name, history)
    n = 600
    rng = np.random.default_rng(4)
    models = [belief.sample(rng) for _ in range(n)]
    found = np.array([np.append(m.dense().ravel(), m.expected_rewards.ravel()) for m in models])
    mean = belief.mean()
    want = np.append(mean.dense().ravel(), mean.expected_rewards.ravel())
    spread = found.std(axis=0) / np.sqrt(n)
    fixed = spread < 1e-15
    assert np.allclose(found.mean(axis=0)[fixed], want[fixed], atol=1e-12)
    z = (found.mean(axis=0) - want)[~fixed] / spread[~fixed]
    assert (np.abs(z) < stats.t.isf(FALSE_ALARM / 2 / len(want), n - 1) + 1.0).all()  # +1: rows are skewed


def test_sampling_is_repeatable_and_moves_a_generator_on():
    belief = CASES["sparse"].belief()
    assert belief.sample(5) == belief.sample(5)
    rng = np.random.default_rng(5)
    assert belief.sample(rng) != belief.sample(rng)


STICKS = Dirichlet(alpha=0.002)  # on 200 states: 0.4 in all, so sticks
GAMMAS = Dirichlet(alpha=0.05)  # one gamma for each state


def sampled(belief, low, high, n=N // 4):
    n_states = belief.n_states
    out, left = np.empty(n), np.empty(n)
    sample_block(
        belief.transitions,
        0,
        new_rng(6),
        np.empty(n_states + 1, np.int32),
        np.empty(n_states + 1),
        low,
        high,
        out,
        left,
    )
    return out, left


@pytest.mark.parametrize("prior", [STICKS, GAMMAS], ids=["sticks", "gammas"])
@pytest.mark.parametrize("seen", [[], [3, 3, 150]], ids=["no data", "some data"])
@pytest.mark.parametrize(("low", "high"), [(0, 100), (0, 4), (100, 200)])
def test_any_block_of_states_has_its_beta_law(prior, seen, low, high):
    """Σ of a block of a Dirichlet vector is Beta(α of the block, α of the rest): Kolmogorov and Smirnov."""
    belief = prior.belief(200, 1)
    for s2 in seen:
        belief.observe(0, 0, 0.0, s2)
    inside = prior.alpha * (high - low) + sum(low <= s2 < high for s2 in seen)
    outside = prior.alpha * 200 + len(seen) - inside
    found, left = sampled(belief, low, high)
    assert (left < 1e-12).all()
    # Ties at 0 and 1 stand for masses below rounding: compare the law between them, and the ties by number.
    edges = np.array([0.0, 1e-9, 1e-3, 0.03, 0.2, 0.4, 0.6, 0.8, 0.97, 1 - 1e-3, 1 - 1e-9, 1.0])
    p = np.diff(stats.beta.cdf(edges, inside, outside))
    counts = np.histogram(found, edges)[0]
    assert agree(counts, p)


@pytest.mark.parametrize("prior", [STICKS, GAMMAS], ids=["sticks", "gammas"])
def test_the_sum_of_squares_has_its_mean(prior):
    """E Σ p² = (α+1)/(Sα+1): the sizes of the sticks, not only their sums."""
    belief = prior.belief(200, 1)
    out = np.empty(N // 4)
    sum_of_squares(belief.transitions, 0, new_rng(7), np.empty(201, np.int32), np.empty(201), out)
    want = (prior.alpha + 1.0) / (200 * prior.alpha + 1.0)
    z = (out.mean() - want) / (out.std() / np.sqrt(len(out)))
    assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


def test_sticks_draw_few_states_and_each_only_once():
    model = Dirichlet(alpha=1 / 5000).belief(5000, 1).sample(8)
    states = model.rows.index
    assert len(states) < 5000 * 40
    for begin, end in model.rows.span:
        assert len(set(states[begin:end].tolist())) == end - begin


def test_sticks_name_every_state_equally_often():
    belief = STICKS.belief(200, 1)
    n = 20_000
    counts, mean = np.zeros(200, np.int64), np.zeros(200)
    rows = np.array([0])
    sample_many(
        belief.transitions, rows, new_rng(9), n, 200, np.empty(201, np.int32), np.empty(201), counts, mean
    )
    assert agree(counts, np.full(200, 1 / 200))


def test_new_outcomes_of_wide_sparse_rows_are_distinct_and_uniform():
    """Rows of 20 among 30 states pass through the marked search."""
    belief = SparseDirichlet(alpha=1.0, p_k=(0.0,) * 19 + (1.0,)).belief(30, 1)
    belief.observe(0, 0, 0.0, 7)
    counts = np.zeros(30)
    for seed in range(300):
        states, _ = belief.sample(seed).row(0, 0)
        assert len(set(states.tolist())) == 20
        counts[states] += 1
    assert counts[7] == 300
    others = np.delete(counts, 7)
    assert agree_binomial(others, 300, 19 / 29)


def agree_binomial(counts, n, p):
    """Cells of sampling without replacement: variance n p (1-p), 28 degrees of freedom, correlation -1/28."""
    k = len(counts)
    x = ((counts - n * p) ** 2).sum() / (n * p * (1 - p)) * (k - 1) / k
    return stats.chi2.sf(x, k - 1) > FALSE_ALARM / 2 and stats.chi2.cdf(x, k - 1) > FALSE_ALARM / 2


@pytest.mark.parametrize(("seen", "n_states"), [([], 40), ([1], 40), ([1, 1, 1, 2], 40)])
def test_the_size_of_a_sampled_sparse_row_has_its_posterior(seen, n_states):
    """k drawn from m_k of Friedman and Singer: chi-square over the sizes."""
    belief = SparseDirichlet(alpha=0.3, beta=1.5).belief(n_states, 1)
    for s2 in seen:
        belief.observe(0, 0, 0.0, s2)
    n, k0 = len(seen), len(set(seen))
    k = np.arange(1, n_states + 1)
    from scipy.special import gammaln

    with np.errstate(invalid="ignore"):
        fall = np.where(k >= k0, gammaln(k + 1) - gammaln(np.maximum(k - k0, 0) + 1), -np.inf)
    m = np.exp(-1.5 * np.log(k) + fall + gammaln(0.3 * k) - gammaln(0.3 * k + n))
    sizes = [np.diff(belief.sample(seed).rows.span, axis=1).ravel()[0] for seed in range(3000)]
    assert agree(np.bincount(sizes, minlength=n_states + 1)[1:], m / m.sum())
