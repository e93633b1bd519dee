"""Where one can stay in a model for ever: its maximal end components.

An end component is a set of states, with an action or more in each, that these actions never leave and within which
they lead from every state to every other. Whatever is done, a run comes to stay in one of them (de Alfaro 1997). If
there is only one maximal one, the model is weakly communicating, and its optimal gain is the same from every state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.validate import entry_positions, used_rows


def end_components(mdp: FiniteMDP) -> NDArray[np.int64]:
    """The number of the maximal end component that each state is in, ``[S]``; -1 where one cannot stay for ever.

    A terminal state is one by itself.

    Examples
    --------
    >>> mdp = FiniteMDP([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 0, 1]]], rewards=[0, 1, 2])
    >>> end_components(mdp)
    array([-1,  0,  1])
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n, n_actions = mdp.n_states, mdp.n_actions
    row, position = entry_positions(mdp.rows.span)
    listed = mdp.rows.prob[position] > 0.0
    row, state = row[listed], mdp.rows.index[position][listed].astype(np.int64)
    source = np.arange(n * n_actions) // n_actions
    anywhere = np.flatnonzero(mdp.rows.background > 0.0)  # such rows lead to a hub, n, which leads everywhere
    kept = used_rows(mdp.space)
    while True:
        here, hub = kept[row], source[anywhere[kept[anywhere]]]
        begin = np.concatenate([source[row[here]], hub, np.full(n, n)])
        end = np.concatenate([state[here], np.full(len(hub), n), np.arange(n)])
        graph = csr_array((np.ones(len(begin), np.int8), (begin, end)), shape=(n + 1, n + 1))
        label = connected_components(graph, connection="strong")[1][:n]
        leaving = np.zeros_like(kept)
        leaving[row[label[source[row]] != label[state]]] = True
        leaving[anywhere] |= bool((label != label[0]).any())
        if not (kept & leaving).any():
            break
        kept = kept & ~leaving
    stays = kept.reshape(n, n_actions).any(axis=1) | mdp.terminal
    found = np.full(n, -1, np.int64)
    found[stays] = np.unique(label[stays], return_inverse=True)[1]
    return found
