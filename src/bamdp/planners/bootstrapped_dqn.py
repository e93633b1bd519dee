"""BootstrappedDQN: Thompson sampling with an ensemble of value networks, each with its own prior network.

Network n of N values action a in state s by Q_n(s, a) = q_n(s)[a] + c p_n(s)[a], where q_n is trained and p_n, the
*randomised prior*, is initialised in the same way but stays fixed. After every real step, each network takes one step
of Adam on a batch of B transitions from the replay memory (the same for all networks) to reduce

    1/B Σ_b (r_b + γ max_{a'} Q⁻_n(s'_b, a') − Q_n(s_b, a_b))²,

where the target Q⁻_n is a copy of Q_n, refreshed every ``target_period`` steps. Terminal transitions have no
continuation value. As in the original's defaults, there are no bootstrap masks and no reward noise: the networks differ
only in their priors and initial parameters. At the start of each episode one network is drawn, and its greedy policy,
*frozen at that time*, is followed until the end. Deep exploration results from the ensemble's disagreement in
regions without data, a disagreement that the priors maintain.

**Reference implementation.** The algorithm is that of ``bsuite.baselines.jax.boot_dqn`` with its default parameters
(those below, with a discount of .99) on one-hot observations such as those of deep sea. Two of its peculiarities are
reproduced: the initial target networks are drawn independently, including their priors, and an episode is played with a
copy of the network from just before the last training step. Four optimisations leave the gradients unchanged:
evaluating only the distinct states of a batch, one batched product for all networks, storing the prior as a table, and
computing targets lazily.

**The networks.** Network n has two hidden layers of W units and one output per action,

    x₁ = max(0, w₁[s] + b₁),        x₂ = max(0, x₁ w₂ + b₂),        q = x₂ w₃ + b₃,

where the one-hot state s merely selects a row of w₁, so the first layer is a lookup. All computations use float32, as
in the original. The optimiser is Adam (Kingma & Ba 2015).

**Departures.** Learning is deferred to the next decision, where the random stream is available; the agent's behaviour
is unaffected. The belief is used only to determine which actions exist and which states are terminal, although the
agent still updates it.

References: Osband, Blundell, Pritzel & Van Roy, "Deep exploration via bootstrapped DQN" (NIPS 2016); Osband,
Aslanides & Cassirer, "Randomized prior functions for deep reinforcement learning" (NeurIPS 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp._kernels.jit import zeros
from bamdp._kernels.random import below, next_word
from bamdp._parameters import positive_number, real_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Cost, KernelPlanner, Plan, Transition, best_of, candidates, estimate

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual constants
LARGEST = 1e12  # limit on float32 values; leaves room for their squares


# --- an ensemble of networks ---------------------------------------------------------------------------------


class Networks(NamedTuple):
    """Parts of the parameters [N, P] of N networks, or of arrays of the same shape (gradients, moments)."""

    w1: np.ndarray  # float32 [N, S, W]
    b1: np.ndarray  # float32 [N, 1, W]
    w2: np.ndarray  # float32 [N, W, W]
    b2: np.ndarray  # float32 [N, 1, W]
    w3: np.ndarray  # float32 [N, W, A]
    b3: np.ndarray  # float32 [N, 1, A]


def layer_shapes(S: int, A: int, W: int) -> list[tuple[int, int]]:
    """Return the shapes of the parts of one network."""
    return [(S, W), (1, W), (W, W), (1, W), (W, A), (1, A)]


def n_parameters(S: int, A: int, W: int) -> int:
    """Return P, the number of parameters per network."""
    return sum(m * n for m, n in layer_shapes(S, A, W))


def parts(parameters: NDArray[np.float32], S: int, A: int, W: int) -> Networks:
    """Return views of the parameters by layer."""
    shapes = layer_shapes(S, A, W)
    ends = np.cumsum([m * n for m, n in shapes])[:-1]
    columns = np.split(parameters, ends, axis=1)
    return Networks(*(column.reshape(-1, *shape) for column, shape in zip(columns, shapes)))


def draw_parameters(
    N: int, S: int, A: int, W: int, n_inputs: int, random: np.random.Generator
) -> NDArray[np.float32]:
    """Draw weights from a normal distribution with scale 1/√(inputs), truncated at two scales; biases are 0.

    ``n_inputs`` is the number of inputs of the first layer (states never seen by a network do not count).
    """
    parameters = np.zeros((N, n_parameters(S, A, W)), np.float32)
    networks = parts(parameters, S, A, W)
    for weights, inputs in ((networks.w1, n_inputs), (networks.w2, W), (networks.w3, W)):
        draws = random.standard_normal(weights.shape, np.float32)
        while (far := np.abs(draws) > 2.0).any():
            draws[far] = random.standard_normal(int(far.sum()), np.float32)
        weights[...] = draws * np.float32(1.0 / math.sqrt(inputs))
    return parameters


def forward(networks: Networks, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (x₁ [N, U, W], x₂ [N, U, W], q [N, U, A]) for the states [U]."""
    x1 = np.maximum(networks.w1[:, states] + networks.b1, 0)
    x2 = np.maximum(x1 @ networks.w2 + networks.b2, 0)
    return x1, x2, x2 @ networks.w3 + networks.b3


def backward(
    networks: Networks, states: np.ndarray, x1: np.ndarray, x2: np.ndarray, dq: np.ndarray, out: Networks
) -> None:
    """Backpropagate the derivatives ``dq`` [N, U, A] with respect to q into ``out``, which must be zero."""
    d2 = (dq @ networks.w3.swapaxes(1, 2)) * (x2 > 0)
    d1 = (d2 @ networks.w2.swapaxes(1, 2)) * (x1 > 0)
    out.w1[:, states] = d1
    out.b1[...] = d1.sum(axis=1, keepdims=True)
    out.w2[...] = x1.swapaxes(1, 2) @ d2
    out.b2[...] = d2.sum(axis=1, keepdims=True)
    out.w3[...] = x2.swapaxes(1, 2) @ dq
    out.b3[...] = dq.sum(axis=1, keepdims=True)


def adam(parameters: Any, first: Any, second: Any, gradient: Any, rate: Any, epsilon: Any) -> None:
    """Take one step of Adam on float32 arrays; ``rate`` and ``epsilon`` include the bias corrections."""
    for moment, beta, term in ((first, BETA1, gradient), (second, BETA2, gradient * gradient)):
        moment *= np.float32(beta)
        moment += (np.float32(1.0) - np.float32(beta)) * term
    parameters -= rate * first / (np.sqrt(second) + epsilon)


# --- the planner ---------------------------------------------------------------------------------------------


@dataclass
class DQNMemory:
    """The last C transitions (number i in slot i mod C) and the networks, which are drawn at the first decision."""

    index: Annotated[np.ndarray, "int64 [C, 3]"]  # s, a, s'
    reward: Annotated[np.ndarray, "float32 [C]"]
    goes_on: Annotated[np.ndarray, "float32 [C]"]  # 0 if the transition was terminal, else 1
    now: Annotated[np.ndarray, "float32 [N, P]"]
    first: Annotated[np.ndarray, "float32 [N, P]"]  # moments of the gradient, for Adam
    second: Annotated[np.ndarray, "float32 [N, P]"]
    gradient: Annotated[np.ndarray, "float32 [N, P]"]  # scratch
    target: Annotated[np.ndarray, "float32 [N, P]"]
    prior: Annotated[np.ndarray, "float32 [N, S, A]"]  # c p_n(s)[a]
    target_q: Annotated[np.ndarray, "float32 [N, S, A]"]  # Q⁻_n(s, a), valid for states in up_to_date
    up_to_date: Annotated[np.ndarray, "bool [S]"]
    head: Annotated[np.ndarray, "float32 [1, P]"]  # the network that plays this episode
    discount: float
    n_seen: int = 0
    n_learned: int = 0  # number of transitions learned from
    n_steps: int = 0  # number of training steps
    head_index: int = -1  # -1 before the first decision
    new_head: bool = True  # draw a network at the next decision


@dataclass(frozen=True, kw_only=True)
class BootstrappedDQN(KernelPlanner):
    """Bootstrapped DQN with randomised priors: an ensemble of value networks, without a model.

    Parameters
    ----------
    n_networks
        N, the number of networks in the ensemble.
    n_hidden
        Number of units in each of the two hidden layers.
    prior_scale
        c, the weight of the prior networks.
    learning_rate
        Learning rate of Adam.
    batch_size
        B, the number of transitions per training step.
    replay_size
        Number of most recent transitions kept in the replay memory.
    min_replay
        Number of transitions observed before training starts.
    target_period
        Number of training steps between target updates.

    Examples
    --------
    >>> import bamdp
    >>> env = bamdp.make_env("deep_sea", size=4)
    >>> agent = bamdp.Agent(BootstrappedDQN(), prior=bamdp.Dirichlet(), rewards=bamdp.NormalGamma(), discount=0.99,
    ...                     n_states=env.n_states, n_actions=2, terminal=env.mdp.terminal, seed=0)
    >>> run = bamdp.simulate(agent, env, steps=1200, seed=0)
    >>> bool(run.rewards[-400:].sum() > 50)  # of 100 treasures
    True
    """

    uses_prior: ClassVar[bool] = False
    one_discount: ClassVar[str] = "its values are learned under one discount"

    keeps: ClassVar[tuple[str, ...]] = tuple(sorted({*DQNMemory.__annotations__} - {"gradient", "discount"}))

    n_networks: int = whole_number(20)
    n_hidden: int = whole_number(50)
    prior_scale: float = real_number(5.0, low=0.0, high=LARGEST)
    learning_rate: float = positive_number(1e-3)
    batch_size: int = whole_number(128)
    replay_size: int = whole_number(10_000)
    min_replay: int = 128
    target_period: int = whole_number(4)

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.integer(self.min_replay, "min_replay", high=self.replay_size)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        size = float(self.n_networks) * n_parameters(n_states, n_actions, self.n_hidden)
        steps = 0.1 * self.n_networks * self.batch_size * self.n_hidden  # cheaper than simulated steps
        replay = 32.0 * self.replay_size
        return estimate(n_states, n_actions, models=0.0, steps=steps, bytes=20 * size + replay)

    def start(self, belief: Belief, discount: float) -> DQNMemory:
        S, A, N = belief.n_states, belief.n_actions, self.n_networks
        size = n_parameters(S, A, self.n_hidden)
        return zeros(DQNMemory, C=self.replay_size, N=N, P=size, S=S, A=A, discount=discount)

    def act(self, memory: DQNMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        q, actions = self._decide(memory, belief, state, rng), np.flatnonzero(belief.space.allowed[state])
        return best_of(actions, q[actions], rng)

    def plan(self, memory: DQNMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        q, actions = self._decide(memory, belief, state, rng), np.flatnonzero(belief.space.allowed[state])
        action = best_of(actions, q[actions], rng)
        spread = self._values(memory, memory.now, np.array([state]))[:, 0].std(axis=0)
        weighed = candidates(actions, q[actions], spread[actions], self.n_networks)
        details = {"network": memory.head_index, "training_steps": memory.n_steps}
        return Plan(action, float(q[action]), weighed, details=details)

    def learn(self, memory: DQNMemory, belief: Belief, seen: Transition) -> None:
        slot = memory.n_seen % self.replay_size
        memory.index[slot] = seen.s, seen.a, seen.s2
        memory.reward[slot] = seen.r
        memory.goes_on[slot] = not belief.space.terminal[seen.s2]
        memory.n_seen += 1

    def begin(self, memory: DQNMemory, belief: Belief, state: int) -> None:
        memory.new_head = True

    def _values(self, memory: DQNMemory, parameters: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return Q_n for all networks, [N, U, A]."""
        return forward(self._parts(memory, parameters), states)[2] + memory.prior[:, states]

    def _parts(self, memory: DQNMemory, parameters: np.ndarray) -> Networks:
        _, S, A = memory.prior.shape
        return parts(parameters, S, A, self.n_hidden)

    def _decide(self, memory: DQNMemory, belief: Belief, state: int, rng: np.ndarray) -> np.ndarray:
        """Train on the transitions since the last decision; return the values of the acting network, [A]."""
        if memory.head_index < 0:
            self._draw_networks(memory, belief, rng)
        if memory.new_head:
            self._catch_up(
                memory, belief, rng, memory.n_seen - 1
            )  # without the last episode's last transition
            memory.head_index = int(below(rng, self.n_networks))
            memory.head[0] = memory.now[memory.head_index]
            memory.new_head = False
        self._catch_up(memory, belief, rng, memory.n_seen)
        q = forward(self._parts(memory, memory.head), np.array([state]))[2][0, 0]
        return np.asarray(q + memory.prior[memory.head_index, state])

    def _draw_networks(self, memory: DQNMemory, belief: Belief, rng: np.ndarray) -> None:
        """Draw all networks, using a stream seeded from ``rng``."""
        random = np.random.default_rng([int(next_word(rng)) for _ in range(4)])
        N, S, A = memory.prior.shape
        shape = N, S, A, self.n_hidden, int((~belief.space.terminal).sum())
        drawn = (draw_parameters(*shape, random) for _ in range(4))
        memory.now[...], prior, memory.target[...], target_prior = drawn
        every, scale = np.arange(S), np.float32(self.prior_scale)
        values = [forward(self._parts(memory, x), every)[2] for x in (prior, memory.target, target_prior)]
        memory.prior[...] = scale * values[0]
        memory.target_q[...] = values[1] + scale * values[2]
        memory.up_to_date[:] = True

    def _catch_up(self, memory: DQNMemory, belief: Belief, rng: np.ndarray, until: int) -> None:
        """Train on all transitions not yet used, up to but excluding number ``until``."""
        while memory.n_learned < until:
            memory.n_learned += 1
            size = min(memory.n_learned, self.replay_size)
            if size >= self.min_replay:
                slots = np.array([below(rng, size) for _ in range(self.batch_size)])
                self._train(memory, slots, belief.space.allowed)

    def _train(self, memory: DQNMemory, slots: np.ndarray, allowed: np.ndarray) -> None:
        """Take a step of Adam for all networks on the transitions in ``slots`` [B]."""
        s, a, s2 = memory.index[slots].T
        due = np.unique(s2[~memory.up_to_date[s2]])
        memory.target_q[:, due] = self._values(memory, memory.target, due)
        memory.up_to_date[due] = True
        best = np.where(allowed[s2], memory.target_q[:, s2], -np.inf).max(axis=-1)
        goes_on = memory.goes_on[slots] > 0.0
        target = memory.reward[slots] + np.float32(memory.discount) * np.where(goes_on, best, 0.0)
        # derivatives of the loss with respect to the outputs for the batch's distinct states
        states, place = np.unique(s, return_inverse=True)
        networks = self._parts(memory, memory.now)
        x1, x2, q = forward(networks, states)
        error = q[:, place, a] + memory.prior[:, s, a] - target
        dq = np.zeros_like(q)
        taken: Any = (slice(None), place, a)
        np.add.at(dq, taken, (2.0 / len(slots) * error).astype(np.float32))
        memory.gradient[...] = 0.0
        backward(networks, states, x1, x2, dq, self._parts(memory, memory.gradient))
        memory.n_steps += 1
        root = math.sqrt(1.0 - BETA2**memory.n_steps)
        rate = np.float32(self.learning_rate * root / (1.0 - BETA1**memory.n_steps))
        adam(memory.now, memory.first, memory.second, memory.gradient, rate, np.float32(EPSILON * root))
        if memory.n_steps % self.target_period == 0:
            memory.target[...] = memory.now
            memory.up_to_date[:] = False
