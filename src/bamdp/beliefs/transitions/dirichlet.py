"""Independent Dirichlet rows: symmetric over all S states, or with a full array of prior counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._serial import saveable
from bamdp.beliefs.base import Prior
from bamdp.beliefs.transitions.counts import empty_counts
from bamdp.beliefs.transitions.full import FullState
from bamdp.beliefs.transitions.symmetric import SymmetricState

LARGEST_ALPHA = 1e100


@saveable
@dataclass(frozen=True, kw_only=True, eq=False)
class Dirichlet(Prior):
    """Independent Dirichlet rows.

    Parameters
    ----------
    alpha
        Prior count of every next state: one number; an array ``[S, A]``, one for each row; or an array
        ``[S, A, S]``, where 0 means "impossible". The classic flat prior is ``Dirichlet(alpha=1 / S)``.

    Examples
    --------
    >>> belief = Dirichlet(alpha=0.5).belief(2, 1)
    >>> belief.observe(0, 0, 1.0, 1)
    >>> belief.predictive(0, 0)
    array([0.25, 0.75])
    """

    alpha: Any = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.alpha, str) or not hasattr(self.alpha, "__len__"):
            alpha = _checks.real(self.alpha, "alpha", low=0.0, high=LARGEST_ALPHA, open_low=True)
            object.__setattr__(self, "alpha", alpha)
            return
        array = _checks.numbers(self.alpha, "alpha")
        if array.ndim not in (2, 3):
            raise ValueError(f"alpha must be a number, [S, A] or [S, A, S], got {array.ndim} dimensions")
        bounds = "above 0" if array.ndim == 2 else "at least 0"
        enough = array > 0.0 if array.ndim == 2 else array >= 0.0
        bad = np.argwhere(~(enough & (array <= LARGEST_ALPHA)))
        if len(bad):
            where = tuple(bad[0].tolist())
            raise ValueError(
                f"alpha{list(where)} must be {bounds} and at most {LARGEST_ALPHA:g}, got {array[where]}"
            )
        if array.ndim == 3:
            empty = np.argwhere(array.sum(axis=2) == 0.0)
            if len(empty):
                s, a = empty[0].tolist()
                raise ValueError(
                    f"alpha of state {s}, action {a} is all zero; some next state must be possible"
                )
        array.setflags(write=False)
        object.__setattr__(self, "alpha", array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dirichlet) and np.array_equal(self.alpha, other.alpha)

    def __hash__(self) -> int:
        return hash((np.shape(self.alpha), np.asarray(self.alpha).tobytes()))

    def state(self, n_states: int, n_actions: int) -> SymmetricState | FullState:
        n_rows = n_states * n_actions
        shape = np.shape(self.alpha)
        if shape not in ((), (n_states, n_actions), (n_states, n_actions, n_states)):
            raise ValueError(
                f"alpha has shape {list(shape)}, which fits neither [S, A] nor [S, A, S] for "
                f"S={n_states}, A={n_actions}"
            )
        if len(shape) < 3:
            return SymmetricState(
                counts=empty_counts(n_rows),
                alpha=np.array(np.broadcast_to(self.alpha, (n_states, n_actions)), float).ravel(),
                mark=np.zeros(n_states + 1, np.int64),
                n_states=n_states,
            )
        prior = np.asarray(self.alpha).reshape(n_rows, n_states)
        row, index = np.nonzero(prior)
        return FullState(
            start=np.searchsorted(row, np.arange(n_rows + 1)).astype(np.int64),
            index=index.astype(np.int32),
            alpha=prior[row, index],
            alpha_sum=prior.sum(axis=1),
            count=np.zeros(len(index), np.int64),
            total=np.zeros(n_rows, np.int64),
            log=np.zeros((64, 2), np.int64),
            top=np.zeros(1, np.int64),
        )
