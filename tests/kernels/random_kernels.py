"""Kernels that fill arrays with random numbers. (Numba needs a file.)"""

from bamdp._kernels.dirichlet import MOST_FACTORS, dirichlet, posterior_row, posterior_row_by_gs
from bamdp._kernels.jit import kernel
from bamdp._kernels.random import below, beta, exponential, gamma, log_gamma, next_word, normal, uniform


@kernel
def words(rng, out):
    for i in range(out.shape[0]):
        out[i] = next_word(rng)


@kernel
def uniforms(rng, out):
    for i in range(out.shape[0]):
        out[i] = uniform(rng)


@kernel
def integers(rng, n, out):
    for i in range(out.shape[0]):
        out[i] = below(rng, n)


@kernel
def normals(rng, out):
    for i in range(out.shape[0]):
        out[i] = normal(rng)


@kernel
def exponentials(rng, out):
    for i in range(out.shape[0]):
        out[i] = exponential(rng)


@kernel
def gammas(rng, shape, out):
    for i in range(out.shape[0]):
        out[i] = gamma(rng, shape)


@kernel
def log_gammas(rng, shape, out):
    for i in range(out.shape[0]):
        out[i] = log_gamma(rng, shape)


@kernel
def betas(rng, a, b, out):
    for i in range(out.shape[0]):
        out[i] = beta(rng, a, b)


@kernel
def dirichlets(rng, shapes, smallest, out):
    """``out[i]``, float64 [n, k]: Dirichlet vectors."""
    n, k = out.shape
    flat = out.reshape(n * k)
    for i in range(n):
        for j in range(k):
            out[i, j] = shapes[j]
        dirichlet(flat, i * k, (i + 1) * k, smallest, rng)


@kernel
def posterior_rows(rng, seen, alpha, way, out):
    """``out[i]``, float64 [n, k]: rows with the given concentrations of outcomes seen, ``alpha`` of others."""
    n, k = out.shape
    flat = out.reshape(n * k)
    for i in range(n):
        for j in range(seen.shape[0]):
            out[i, j] = seen[j]
        new = i * k + seen.shape[0]
        if way > MOST_FACTORS:
            posterior_row_by_gs(flat, i * k, new, (i + 1) * k, way, rng)
        else:
            posterior_row(flat, i * k, new, (i + 1) * k, alpha, way, rng)
