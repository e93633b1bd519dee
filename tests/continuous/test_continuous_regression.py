"""Posteriors of continuous dynamics against closed forms and against a Gaussian process with the same kernel."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime

from bamdp.continuous import regression
from bamdp.continuous.cholesky import factor, solve
from bamdp.continuous.regression import (
    Hyper,
    draw_scale,
    empty_posterior,
    features,
    fit,
    frequencies,
    stratified,
)


def data(n=12, n_inputs=2, n_features=40, seed=0):
    rng = np.random.default_rng(seed)
    base = frequencies(n_features // 2, n_inputs, rng)
    hyper = Hyper(np.array([0.8, 1.7]), 1.3, np.array([0.5, 0.5, 0.7]), 0.2)
    x = rng.normal(size=(n, n_inputs))
    return base, hyper, x, features(base, hyper, x, np.zeros((n, 0))), rng.normal(size=n)


def test_the_posterior_is_that_of_conjugate_regression():
    *_, rows, y = data()
    a0, posterior = 3.0, empty_posterior(rows.shape[1], 3.0).observe_all(rows, y)
    precision = np.eye(rows.shape[1]) + rows.T @ rows
    mean = np.linalg.solve(precision, rows.T @ y)
    assert posterior.mean == pytest.approx(mean)
    assert posterior.a == a0 + len(y) / 2
    assert posterior.b == pytest.approx(a0 + (y @ y - mean @ precision @ mean) / 2)


def test_one_datum_after_the_other_gives_the_same_posterior_as_all_at_once():
    *_, rows, y = data()
    whole = empty_posterior(rows.shape[1], 3.0).observe_all(rows, y)
    part = empty_posterior(rows.shape[1], 3.0)
    for row, target in zip(rows, y):
        part = part.observe(row, target)
    assert part.mean == pytest.approx(whole.mean)
    assert part.b == pytest.approx(whole.b)


def test_the_evidence_is_the_density_of_a_multivariate_student():
    *_, rows, y = data()
    a0 = 3.0
    posterior = empty_posterior(rows.shape[1], a0).observe_all(rows, y)
    student = stats.multivariate_t(shape=np.eye(len(y)) + rows @ rows.T, df=2 * a0)  # b₀ = a₀
    assert posterior.log_evidence() == pytest.approx(student.logpdf(y))


def test_predictions_are_those_of_a_gaussian_process_with_the_kernel_of_the_features():
    base, hyper, _, rows, y = data()
    posterior = empty_posterior(rows.shape[1], 1e12).observe_all(rows, y)  # the noise is known
    new = np.random.default_rng(1).normal(size=(5, 2))
    others = features(base, hyper, new, np.zeros((5, 0)))
    kernel, cross = rows @ rows.T + np.eye(len(y)), others @ rows.T
    mean, deviation = posterior.predict(others)
    assert mean == pytest.approx(cross @ np.linalg.solve(kernel, y))
    variance = (others * others).sum(1) + 1.0 - (cross * np.linalg.solve(kernel, cross.T).T).sum(1)
    assert deviation == pytest.approx(np.sqrt(variance), rel=1e-5)


def test_many_random_features_have_the_squared_exponential_kernel():
    hyper = Hyper(np.array([0.8, 1.7]), 1.3, np.zeros(3), 0.2)
    x = np.random.default_rng(0).normal(size=(6, 2))
    base = frequencies(20_000, 2, np.random.default_rng(1))
    rows = hyper.noise * features(base, hyper, x, np.zeros((6, 0)))
    apart = ((x[:, None] - x[None]) / hyper.lengthscales) ** 2
    assert rows @ rows.T == pytest.approx(1.3**2 * np.exp(-0.5 * apart.sum(2)), abs=0.03)


def test_conditioning_on_branches_is_the_posterior_of_all_data():
    *_, rows, y = data()
    posterior = empty_posterior(rows.shape[1], 3.0).observe_all(rows[:6], y[:6])
    branches, targets = np.stack([rows[6:9], rows[9:12]]), np.stack([y[6:9], y[9:12]])
    means, _, _, scales = posterior.condition(branches, targets)
    for branch, target, mean, b in zip(branches, targets, means, scales):
        whole = posterior.copy().observe_all(branch, target)
        assert mean == pytest.approx(whole.mean)
        assert b == pytest.approx(whole.b)


def test_draws_have_the_covariance_of_the_posterior():
    *_, rows, y = data(n_features=4)
    posterior = empty_posterior(rows.shape[1], 3.0).observe_all(rows[:6], y[:6])
    rng, n, covariance = np.random.default_rng(2), 40_000, np.linalg.inv(posterior.precision)
    draws = [posterior.direction(z, e) for z, e in zip(rng.normal(size=(n, 7)), rng.normal(size=(n, 6)))]
    whitened = posterior.solve(rng.normal(size=(n, 7)) @ posterior.factor.T)
    error = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / n)
    for sample in (np.array(draws), whitened):
        assert (np.abs(sample.T @ sample / n - covariance) < 5 * error).all()


def test_draws_after_a_branch_have_the_covariance_of_the_posterior_of_all_data():
    *_, rows, y = data()
    posterior = empty_posterior(rows.shape[1], 3.0).observe_all(rows[:6], y[:6])
    branches, targets = np.stack([rows[6:9], rows[9:12]]), np.stack([y[6:9], y[9:12]])
    _, gains, moves, _ = posterior.condition(branches, targets)
    for branch, gain, move in zip(branches, gains, moves):
        change = np.eye(len(gain.T)) - move.T @ gain
        exact = np.linalg.inv(posterior.precision + branch.T @ branch)
        assert change @ np.linalg.inv(posterior.precision) @ change.T == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("count", [2, 7, 64])
def test_stratified_numbers_are_normal_in_pairs(count):
    z = stratified(np.random.default_rng(0), count, (5, 3))
    assert z.shape == (count, 5, 3)
    pairs = count // 2 * 2
    assert (z[1:pairs:2] == -z[0:pairs:2]).all()
    strata = np.floor(2 * stats.norm.cdf(-np.abs(z[::2])) * len(z[::2]))  # one number in each
    assert (np.sort(strata, 0) == np.arange(len(z[::2]))[:, None, None]).all()


def test_quantiles_of_the_noise_are_those_of_the_inverse_gamma():
    u = np.array([0.1, 0.5, 0.9])
    assert draw_scale(np.float64(4.0), np.float64(3.0), u) ** -2 == pytest.approx(
        stats.gamma(4.0, scale=1 / 3.0).ppf(u)
    )


def test_the_gradient_of_the_evidence_is_that_of_differences(monkeypatch):
    seen = {}

    def look(loss, first, **options):
        seen.update(loss=loss, first=first)
        return minimize(loss, first, **options)

    minimize = regression.minimize
    monkeypatch.setattr(regression, "minimize", look)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(15, 2))
    fit(
        x, np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=15), Hyper(np.full(2, 1.5), 1.0, np.ones(3), 0.01), rng
    )
    theta = seen["first"] + 0.3
    by_differences = approx_fprime(theta, lambda t: seen["loss"](t)[0], 1e-6)
    assert seen["loss"](theta)[1] == pytest.approx(by_differences, rel=1e-3, abs=1e-3)


def test_the_fit_finds_noise_and_what_does_not_matter():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=120)
    found = fit(x, y, Hyper(np.full(3, 1.5), 1.0, np.ones(4), 0.01), rng)
    assert 0.05 < found.noise < 0.2  # twelve iterations do not go all the way
    assert found.lengthscales[0] < 2.0 < 10.0 < found.lengthscales[1:].min()


def test_factors_and_solutions_are_those_of_numpy():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(30, 30))
    matrix, right = root @ root.T + np.eye(30), rng.normal(size=(4, 30))
    assert factor(matrix) == pytest.approx(np.linalg.cholesky(matrix))
    assert solve(factor(matrix), right) == pytest.approx(np.linalg.solve(matrix, right.T).T)
    assert factor(matrix - 1e4 * np.eye(30)) is None


def test_a_singular_posterior_is_factored_all_the_same():
    posterior = empty_posterior(3, 3.0).observe_all(np.full((4, 3), 1e12), np.ones(4))
    assert np.isfinite(posterior.mean).all()
