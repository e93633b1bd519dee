"""Random numbers of kernels. Fixed seeds; each comparison raises a false alarm with probability 1e-4."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import random_kernels as fill
from scipy import special, stats

from bamdp._kernels import random as rnd
from bamdp._kernels.dirichlet import power_method

FALSE_ALARM = 1e-4
N = 100_000


def sample(what, *args, n=N, seed=0):
    out = np.empty(n)
    what(rnd.new_rng(seed), *args, out)
    return out


def ks(found, law):
    return stats.kstest(found, law).pvalue > FALSE_ALARM


def test_words_are_those_of_xoshiro256plusplus():
    """Python integers after Blackman & Vigna's C program."""
    mask = 2**64 - 1
    s = [1, 2, 3, 4]

    def rotate(x, k):
        return (x << k | x >> (64 - k)) & mask

    want = []
    for _ in range(50):
        want.append((rotate((s[0] + s[3]) & mask, 23) + s[0]) & mask)
        t = s[1] << 17 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
    rng = np.array([1, 2, 3, 4], np.uint64)
    out = np.zeros(50, np.uint64)
    fill.words(rng, out)
    assert out.tolist() == want
    assert want[:3] == [41943041, 58720359, 3588806011781223]  # the reference program's first numbers
    assert rng.tolist() == s


def test_uniforms_are_uniform_on_53_bits():
    x = sample(fill.uniforms)
    assert ks(x, stats.uniform.cdf)
    assert x.min() >= 0.0
    assert x.max() < 1.0
    assert np.array_equal(x * 2**53, np.floor(x * 2**53))
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / math.sqrt(N)


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_below_is_uniform_over_its_integers(n):
    out = np.zeros(N, np.int64)
    fill.integers(rnd.new_rng(1), n, out)
    assert out.min() >= 0
    assert out.max() < n
    if n > 1:
        assert stats.chisquare(np.bincount(out, minlength=n)).pvalue > FALSE_ALARM


def test_normals_are_normal_into_the_tails():
    x = sample(fill.normals, n=10 * N)
    assert ks(x, stats.norm.cdf)
    for edge in (2.5, rnd.NORMAL_EDGE, 4.2):
        beyond = int((np.abs(x) > edge).sum())
        assert stats.binomtest(beyond, len(x), 2 * stats.norm.sf(edge)).pvalue > FALSE_ALARM
    tail = np.abs(x[np.abs(x) > rnd.NORMAL_EDGE])
    p = stats.norm.sf(rnd.NORMAL_EDGE)
    assert ks(tail, lambda t: 1 - stats.norm.sf(t) / p)
    assert stats.binomtest(int((x > 0).sum()), len(x)).pvalue > FALSE_ALARM


def test_exponentials_are_exponential_into_the_tail():
    x = sample(fill.exponentials, n=10 * N)
    assert ks(x, stats.expon.cdf)
    tail = x[x > rnd.EXPONENTIAL_EDGE]
    assert stats.binomtest(len(tail), len(x), math.exp(-rnd.EXPONENTIAL_EDGE)).pvalue > FALSE_ALARM
    assert ks(tail - rnd.EXPONENTIAL_EDGE, stats.expon.cdf)


@pytest.mark.parametrize("x", [rnd._NORMAL_X, rnd._EXPONENTIAL_X], ids=["normal", "exponential"])
def test_ziggurat_layers_fall_to_zero_and_have_one_area(x):
    """The last layer closes: its top is the density's peak, 1, although nothing in the recursion says so."""
    density = (lambda v: np.exp(-0.5 * v * v)) if x is rnd._NORMAL_X else (lambda v: np.exp(-v))
    assert len(x) == rnd.LAYERS + 1
    assert (np.diff(x) < 0.0).all()
    assert x[-1] == 0.0
    area = x[0] * density(x[1])
    layers = x[1:-1] * (density(x[2:]) - density(x[1:-1]))
    assert np.allclose(layers, area, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("shape", [0.05, 0.2, 0.7, 1.0, 1.5, 30.0, 1e5])
def test_gammas_have_their_law(shape):
    assert ks(sample(fill.gammas, shape), stats.gamma(shape).cdf)


@pytest.mark.parametrize("shape", [1e-4, 0.01, 0.5, 3.0])
def test_logarithms_of_gammas_have_their_law_where_gammas_underflow(shape):
    """For tiny shapes -shape·log X is nearly exponential; in general log X has digamma as its mean."""
    x = sample(fill.log_gammas, shape)
    assert np.isfinite(x).all()
    spread = math.sqrt(special.polygamma(1, shape) / N)
    assert abs(x.mean() - special.digamma(shape)) < stats.norm.isf(FALSE_ALARM / 2) * spread
    if shape < 1.0:  # P(log X < -t) for large t is e^(-shape t) / Γ(1 + shape)
        t = 3.0 / shape + 30.0
        p = math.exp(-shape * t) / special.gamma(1.0 + shape)
        assert stats.binomtest(int((x < -t).sum()), N, p).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.2, 0.7), (2.5, 0.4), (5.0, 2.0), (300.0, 0.5)])
def test_betas_have_their_law(a, b):
    assert ks(sample(fill.betas, a, b), stats.beta(a, b).cdf)


@pytest.mark.parametrize(("a", "b"), [(1e-3, 2e-3), (1e-8, 1e-8), (1.001, 1e-5)])
def test_betas_with_tiny_parameters_choose_an_end(a, b):
    x = sample(fill.betas, a, b)
    assert ((x >= 0.0) & (x <= 1.0)).all()
    for edge in (1e-200, 1e-10, 0.5, 1 - 1e-10):
        p = stats.beta(a, b).cdf(edge)
        assert stats.binomtest(int((x <= edge).sum()), N, p).pvalue > FALSE_ALARM


def assert_beta_laws(out, shapes):
    """By thresholds, since with tiny shapes (drawn as logarithms) many coordinates are 0 to rounding."""
    assert np.allclose(out.sum(axis=1), 1.0, atol=1e-14)
    for i, a in enumerate(shapes):
        law = stats.beta(a, sum(shapes) - a)
        for edge in (1e-100, 1e-6, 0.1, 0.5, 0.9):
            p = law.cdf(edge)
            found = stats.binomtest(int((out[:, i] <= edge).sum()), len(out), p)
            assert found.pvalue > FALSE_ALARM / (5 * len(shapes))


@pytest.mark.parametrize("shapes", [(0.5, 1.0, 2.0), (0.07, 0.3, 2.0), (1e-3, 2e-3, 3e-3), (0.01, 1.0, 50.0)])
def test_dirichlet_coordinates_have_their_beta_laws(shapes):
    out = np.empty((N // 4, 3))
    fill.dirichlets(rnd.new_rng(2), np.array(shapes), min(shapes), out)
    assert_beta_laws(out, shapes)


@pytest.mark.parametrize(
    ("seen", "alpha", "unseen"),
    [
        ((7.2,), 0.2, 2),  # a power taken as a product
        ((), 0.3, 3),  # as an exponential
        ((), 0.04, 3),  # GS
        ((3.1, 1.1), 0.1, 2),
        ((2.04, 1.04), 0.04, 23),
        ((1.01,), 0.01, 3),  # as logarithms
        ((3.0, 2.0), 1.0, 2),
        ((4.5,), 1.5, 2),
    ],
)
def test_posterior_rows_have_their_beta_laws(seen, alpha, unseen):
    out = np.empty((N // 4, len(seen) + unseen))
    fill.posterior_rows(rnd.new_rng(2), np.array(seen), alpha, power_method(alpha), out)
    assert_beta_laws(out, (*seen, *[alpha] * unseen))


def test_gamma_variables_by_proposals_and_a_poisson_line_are_independent_of_each_other():
    """Dirichlet coordinates covary by -a²/(A²(A+1)): a rejection that favoured its neighbours would show."""
    k, alpha, n = 25, 0.04, N
    out = np.empty((n, k))
    fill.posterior_rows(rnd.new_rng(5), np.empty(0), alpha, power_method(alpha), out)
    products = (out[:, :-1] * out[:, 1:]).sum(axis=1)  # of neighbours
    expected = (k - 1) * alpha**2 / (k * alpha * (k * alpha + 1))
    assert abs(products.mean() - expected) < 4.5 * products.std() / np.sqrt(n)


def test_a_dirichlet_of_one_is_one_without_a_draw():
    rng = rnd.new_rng(3)
    before = rng.copy()
    out = np.zeros((4, 1))
    fill.dirichlets(rng, np.array([0.3]), 0.3, out)
    assert (out == 1.0).all()
    assert np.array_equal(rng, before)


def test_dirichlet_vectors_with_shapes_near_underflow_stay_finite():
    for shape in (1e-300, 1e-100, rnd_tiny(), 1e10):
        out = np.empty((20_000, 2))
        fill.dirichlets(rnd.new_rng(4), np.full(2, shape), shape, out)
        assert np.isfinite(out).all()
        assert np.allclose(out.sum(axis=1), 1.0)


def rnd_tiny():
    from bamdp._kernels.dirichlet import TINY_SHAPE

    return TINY_SHAPE


def test_seeds_make_states():
    assert np.array_equal(rnd.new_rng(5), rnd.new_rng(np.random.SeedSequence(5)))
    assert np.array_equal(rnd.as_rng(5), rnd.new_rng(5))
    assert np.array_equal(rnd.as_rng(np.int64(5)), rnd.new_rng(5))
    assert not np.array_equal(rnd.as_rng(None), rnd.as_rng(None))
    state = rnd.new_rng(5)
    assert rnd.as_rng(state) is state
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    assert np.array_equal(rnd.as_rng(one), rnd.as_rng(two))
    assert one.integers(2**60) == two.integers(2**60)


SCRIPT = """
import json, sys
import numpy as np
import random_kernels as fill
from bamdp._kernels.jit import JIT
from bamdp._kernels.random import new_rng
words = np.zeros(200, np.uint64)
rng = new_rng(11)
fill.words(rng, words)
out = {"jit": JIT, "words": [int(w) for w in words], "state": [int(w) for w in rng]}
for name in ("uniforms", "normals", "exponentials"):
    x = np.zeros(2000)
    getattr(fill, name)(new_rng(12), x)
    out[name] = [v.hex() for v in x.tolist()]
for shape in (0.01, 0.3, 4.0):
    x = np.zeros(500)
    fill.gammas(new_rng(13), shape, x)
    out[f"gamma {shape}"] = [v.hex() for v in x.tolist()]
json.dump(out, sys.stdout)
"""


def test_without_the_compiler_the_bits_are_the_same():
    """Words, uniforms and ziggurats bit for bit; gammas, which take logarithms and roots, to 1e-13."""
    found = {}
    for off in ("0", "1"):
        paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        env = {**os.environ, "NUMBA_DISABLE_JIT": off, "PYTHONPATH": paths}
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        found[off] = json.loads(run.stdout)
    assert (found["0"].pop("jit"), found["1"].pop("jit")) == (True, False)
    for name in ("words", "state", "uniforms"):
        assert found["0"][name] == found["1"][name]
    for name in set(found["0"]) - {"words", "state", "uniforms"}:
        one, two = ([float.fromhex(v) for v in found[off][name]] for off in ("0", "1"))
        assert np.allclose(one, two, rtol=1e-13, atol=0.0)
