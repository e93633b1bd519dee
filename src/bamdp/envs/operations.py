"""Textbook problems of operations research: inventory control, machine replacement, queueing and dynamic pricing.

Each problem has the form s' = f(s, a, w) with a known function f; the disturbances w (demand, wear, arrivals, or a
customer's willingness to pay) are independent and identically distributed. An agent with the prior ``env.disturbance``
(on the command line ``--prior disturbance``) knows f and learns the distribution of w
(:class:`bamdp.DisturbancePrior`). The agent knows the rewards unless it has a reward model, such as
``rewards="normal"``.

References: M. Puterman (1994), Markov Decision Processes; D. Bertsekas (2017), Dynamic Programming and Optimal Control,
volume 1; G. Gallego and G. van Ryzin (1994), Optimal dynamic pricing of inventories with stochastic demand over finite
horizons, Management Science 40.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp.beliefs.transitions.disturbance import DisturbancePrior
from bamdp.envs.environment import Environment
from bamdp.envs.picture import row_layout
from bamdp.envs.registry import Count, Numbers, Probabilities, Rate, Real, Size, environment, rows
from bamdp.mdp.model import FiniteMDP


@environment
def inventory(
    capacity: Count = 14,
    n_orders: Size = 5,
    lot: Count = 2,
    demand: Rate = 3.0,
    price: Real = 4.0,
    cost: Real = 1.0,
    fee: Real = 4.0,
    holding: Real = 0.5,
) -> Environment:
    """A shop orders goods, for a fee per order, before it knows the day's demand.

    Description
    -----------
    Frequent orders incur fees, large orders incur storage costs, and unmet demand is lost. The optimal policy is an (s,
    S) policy: it orders up to a fixed level whenever the stock is low enough.

    States
    ------
    0 .. ``capacity``, the stock in the evening (15 states).

    Actions
    -------
    0 .. ``n_orders`` - 1: the number of lots to order. They arrive before the shop opens; units beyond the capacity are
    not delivered.

    Transitions
    -----------
    With y = min(s + ``lot`` a, ``capacity``) in the morning, s' = max(y - w, 0). The demand w is Poisson with mean
    ``demand``.

    Rewards
    -------
    R(s, a, s'): ``price`` for each unit sold, minus ``cost`` for each unit delivered, ``fee`` for a delivery and
    ``holding`` for each unit left over.

    Start
    -----
    State 0. The task is continuing; a run lasts 1000 days.

    Reference
    ---------
    H. Scarf (1960), The optimality of (S, s) policies in the dynamic inventory problem; Puterman (1994), section 3.2;
    Bertsekas (2017), section 1.1.

    Parameters
    ----------
    capacity : int, default 14
        Maximum stock.
    n_orders : int, default 5
        Number of actions.
    lot : int, default 2
        Units per lot.
    demand : float, default 3
        Mean demand per day.
    price, cost, fee, holding : float, default 4, 1, 4 and 0.5
        Amounts in the reward function above.

    Examples
    --------
    >>> env = inventory()
    >>> env.mdp.row(2, 0)[1].round(3)  # a stock of 2 is sold out on four days of five
    array([0.801, 0.149, 0.05 ])
    """
    stock, order, w = np.ogrid[: capacity + 1, :n_orders, : capacity + 1]
    morning = np.minimum(stock + lot * order, capacity)
    delivered, left = morning - stock, w  # the third axis is also the next state
    sold = np.maximum(morning - left, 0)
    paid = price * sold - cost * delivered - fee * (delivered > 0) - holding * left
    return _controlled(
        "inventory",
        np.maximum(morning - w, 0),
        _poisson(demand, capacity),
        np.where(left <= morning, paid, 0.0),
        axis="units in stock in the evening",
        action_labels=[f"order {lot * a}" for a in range(n_orders)],
    )


@environment
def machine(
    n_states: Size = 10,
    wear: Probabilities = (0.4, 0.35, 0.2, 0.05),
    income: Real = 1.0,
    service: Real = 0.4,
    replacement: Real = 2.0,
) -> Environment:
    """A machine that wears while running and earns less the more worn it is; it can be serviced or replaced.

    Description
    -----------
    Running a worn machine is tempting because it brings an immediate income. The optimal policy runs the machine while
    the wear is below a threshold.

    States
    ------
    0 .. ``n_states`` - 1, the wear, from new to broken (10 states).

    Actions
    -------
    0 run, 1 service, 2 replace.

    Transitions
    -----------
    Running leads from s to min(s + w, ``n_states`` - 1), where the daily wear w is 0, 1, ... with the probabilities
    ``wear``. A service removes two units of wear, and a new machine has none.

    Rewards
    -------
    R(s, a): running earns ``income`` times 1 - s / (``n_states`` - 1); a service costs ``service`` and a replacement
    ``replacement``.

    Start
    -----
    State 0. The task is continuing; a run lasts 1000 days.

    Reference
    ---------
    C. Derman (1963), On optimal replacement rules when changes of state are Markovian; Puterman (1994), section 4.7;
    Bertsekas (2017), exercise 1.2 and section 5.2.

    Parameters
    ----------
    n_states : int, default 10
        Number of wear levels.
    wear : sequence of float, default (0.4, 0.35, 0.2, 0.05)
        Probabilities of 0, 1, ... units of wear per day.
    income, service, replacement : float, default 1, 0.4 and 2
        Amounts in the reward function above.

    Examples
    --------
    >>> machine().mdp.row(8, 0)
    (array([8, 9]), array([0.4, 0.6]))
    """
    state, w = np.ogrid[:n_states, : len(wear)]
    after = np.zeros((n_states, 3, len(wear)), int)
    after[:, 0] = np.minimum(state + w, n_states - 1)
    after[:, 1] = np.maximum(state - 2, 0)
    rewards = np.empty((n_states, 3))
    rewards[:, 0] = income * (1.0 - np.arange(n_states) / (n_states - 1))
    rewards[:, 1:] = -service, -replacement
    return _controlled(
        "machine",
        after,
        wear,
        rewards,
        axis="wear",
        state_labels=["new", *map(str, range(1, n_states - 1)), "broken"],
        action_labels=("run", "service", "replace"),
    )


@environment
def queue(
    capacity: Count = 11,
    arrivals: Rate = 1.5,
    speeds: Numbers = (1, 2, 4),
    costs: Numbers = (0.0, 1.0, 4.0),
    fee: Real = 1.0,
    waiting: Real = 0.3,
) -> Environment:
    """A service counter with three speeds: faster service costs more, and so do customers who wait.

    Description
    -----------
    The optimal policy serves faster the longer the queue is.

    States
    ------
    0 .. ``capacity``, the number of customers in the queue (12 states).

    Actions
    -------
    0 .. 2, the speeds: the maximum number of customers served in a period.

    Transitions
    -----------
    s' = min(max(s - speed, 0) + w, ``capacity``). The number w of arrivals is Poisson with mean ``arrivals``;
    customers who arrive at a full queue are lost.

    Rewards
    -------
    R(s, a): ``fee`` for each customer served, minus ``waiting`` for each customer in the queue and minus the cost of
    the speed.

    Start
    -----
    State 0. The task is continuing; a run lasts 1000 periods.

    Reference
    ---------
    T. Crabill (1972), Optimal control of a service facility with variable exponential service times and constant
    arrival rate, Management Science 18; Bertsekas (2017), section 5.6; here in discrete periods instead of continuous
    time.

    Parameters
    ----------
    capacity : int, default 11
        Maximum length of the queue.
    arrivals : float, default 1.5
        Mean number of arrivals per period.
    speeds : sequence of int, default (1, 2, 4)
        Customers served per period at each speed.
    costs : sequence of float, default (0, 1, 4)
        Cost of each speed.
    fee, waiting : float, default 1 and 0.3
        Amounts in the reward function above.

    Examples
    --------
    >>> queue().mdp.row(11, 2)[0]
    array([ 7,  8,  9, 10, 11])
    """
    served, price = np.array(speeds, int), np.array(costs, float)
    if len(served) != len(price) or (served < 0).any():
        raise ValueError(f"speeds and costs must be lists of one length, got {speeds} and {costs}")
    length, w = np.arange(capacity + 1)[:, None], np.arange(capacity + 1)
    done = np.minimum(length, served)
    return _controlled(
        "queue",
        np.minimum((length - done)[:, :, None] + w, capacity),
        _poisson(arrivals, capacity),
        fee * done - waiting * length - price,
        axis="customers in the queue",
        action_labels=[f"serve {n}" for n in served],
    )


@environment
def pricing(
    stock: Count = 10,
    prices: Numbers = (1.0, 2.0, 3.0, 4.0, 5.0),
    buyers: Probabilities = (0.95, 0.75, 0.5, 0.3, 0.15),
    holding: Real = 0.2,
    restocking: Real = 5.0,
) -> Environment:
    """A shop sets the day's price for goods that incur storage costs until they are sold.

    Description
    -----------
    At most one customer arrives per day and buys if the price does not exceed the customer's valuation. When the store
    is full, lower prices are worthwhile; when it is empty, a delivery refills it.

    States
    ------
    0 .. ``stock``, the units in store (11 states).

    Actions
    -------
    0 .. 4, the prices on the menu.

    Transitions
    -----------
    The disturbance w is the number of prices on the menu that the day's customer would pay: a unit is sold at price a
    if w > a. In state 0 the store is refilled, regardless of the price.

    Rewards
    -------
    R(s, a, s'): the price if a unit is sold, minus ``holding`` for each unit in store; -``restocking`` in state 0.

    Start
    -----
    State ``stock``. The task is continuing; a run lasts 1000 days.

    Reference
    ---------
    G. Gallego, G. van Ryzin (1994), Optimal dynamic pricing of inventories with stochastic demand over finite horizons,
    Management Science 40; with deliveries instead of a finite horizon.

    Parameters
    ----------
    stock : int, default 10
        Units per delivery.
    prices : sequence of float, default (1, 2, 3, 4, 5)
        The menu, in ascending order.
    buyers : sequence of float, default (0.95, 0.75, 0.5, 0.3, 0.15)
        Probability of a sale at each price, in descending order.
    holding, restocking : float, default 0.2 and 5
        Amounts in the reward function above.

    Examples
    --------
    >>> pricing().mdp.row(3, 2)
    (array([2, 3]), array([0.5, 0.5]))
    """
    menu, chances = np.array(prices, float), np.array(buyers, float)
    if len(menu) != len(chances):
        raise ValueError(f"prices and buyers must be lists of one length, got {prices} and {buyers}")
    limits = np.array([1.0, *chances, 0.0])
    if (np.diff(menu) <= 0).any() or (np.diff(limits) > 0).any():
        raise ValueError("prices must rise, and the probabilities of a sale fall from at most 1")
    state, price, w = np.ogrid[: stock + 1, : len(menu), : len(menu) + 1]
    after = np.where(state > 0, state - (w > price), stock)
    rewards = np.zeros((stock + 1, len(menu), stock + 1)) - holding * state
    filled = np.arange(1, stock + 1)
    rewards[filled, :, filled - 1] += menu
    rewards[0] = -restocking
    return _controlled(
        "pricing",
        after,
        -np.diff(limits),
        rewards,
        start=stock,
        axis="units in stock",
        action_labels=[f"price {p:g}" for p in menu],
    )


def _controlled(
    name: str,
    after: NDArray[np.int64],
    chances: ArrayLike,
    rewards: NDArray[np.float64],
    *,
    axis: str,
    action_labels: Sequence[str],
    state_labels: Sequence[str] | None = None,
    start: int = 0,
) -> Environment:
    """Return the environment with next states ``after`` [S, A, W] and disturbance probabilities ``chances`` [W]."""
    mdp = FiniteMDP(rows(after, chances), rewards, state_labels=state_labels, action_labels=action_labels)
    layout = row_layout(len(after), "grid", named=True, axis=axis)
    known = DisturbancePrior(after)
    return Environment(name, mdp, start=start, time_limit=0.25, layout=layout, disturbance=known)


def _poisson(mean: float, highest: int) -> NDArray[np.float64]:
    """Return the Poisson probabilities of 0 .. ``highest``, with the tail's mass added to ``highest``."""
    n = np.arange(highest)
    p = np.exp(n * math.log(mean) - mean - np.array([math.lgamma(k + 1.0) for k in n]))
    return np.append(p, max(0.0, 1.0 - p.sum()))
