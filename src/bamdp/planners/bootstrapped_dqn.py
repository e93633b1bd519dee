"""BootstrappedDQN: Thompson sampling with an ensemble of value networks, each with a prior network of its own.

Network n of N values action a in state s by Q_n(s, a) = q_n(s)[a] + c p_n(s)[a], where q_n is trained and p_n, drawn in
the same way, stays as it is: the *randomised prior*. Each is trained by one step of Adam after every real step, on a
batch of B transitions from the replay memory (the same for all networks), to lower

    1/B Σ_b m_bn (r_b + σ z_bn + γ max_{a'} Q⁻_n(s'_b, a') − Q_n(s_b, a_b))²,

where Q⁻_n is what Q_n was at the last of every ``target_period`` steps, m_bn are the bootstrap masks and z_bn
standard normal, both drawn once for a transition. No value follows an end. For each episode one network is drawn, and
its greedy policy, *as it is then*, is followed to the end: deep exploration comes from the disagreement of the
ensemble where there are no data, which the priors keep alive.

**What it is faithful to.** ``bsuite.baselines.jax.boot_dqn`` with its default parameters (those below, with a
discount of .99), on observations that are one-hot, as those of deep sea are. Kept are also its oddities: the first
target networks are drawn apart, priors included, and an episode is played with a copy of the network from just before
the last training step. Faster are: distinct states of a batch instead of all, one batched product for all networks, the
prior as a table, targets computed when first asked for. The gradients are the same.

**The networks.** Network n has two hidden layers of W units and an output an action,

    x₁ = max(0, w₁[s] + b₁),        x₂ = max(0, x₁ w₂ + b₂),        q = x₂ w₃ + b₃,

where the one-hot state s only picks a row of w₁. So the first layer is a look-up, a batch is made of its distinct
states alone, and all networks go through one batched product a layer. Everything is float32, as in the original.

Adam (Kingma & Ba 2015) moves every parameter that has ever had a gradient, also at steps at which it has none; a row
of w₁ whose state was never in a batch has moments of zero and stays. So only the rows of such states are gone
through, with the very same result.

**Departures.** Learning happens at the next decision, where the random stream is at hand; what the agent does is the
same. The belief is not used, except for which actions exist and which states end an episode; an agent updates it all
the same.

References: Osband, Blundell, Pritzel & Van Roy, "Deep exploration via bootstrapped DQN" (NIPS 2016); Osband,
Aslanides & Cassirer, "Randomized prior functions for deep reinforcement learning" (NeurIPS 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import below, next_word, normal, uniform
from bamdp._parameters import positive_number, real_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Cost, Plan, Planner, Transition, candidates, estimate, put_array
from bamdp.planners.random_play import best_action_of

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual ones
ABSENT, UNMET = -1, -2  # places of states
LARGEST = 1e12  # of numbers that are kept in 32 bits, with their squares


# --- an ensemble of networks ----------------------------------------------------------------------------------


class Networks(NamedTuple):
    """Parameters of N networks, or something of the same shape for each (gradients, moments)."""

    w1: np.ndarray  # float32 [N, S, W]
    b1: np.ndarray  # float32 [N, 1, W]
    w2: np.ndarray  # float32 [N, W, W]
    b2: np.ndarray  # float32 [N, 1, W]
    w3: np.ndarray  # float32 [N, W, A]
    b3: np.ndarray  # float32 [N, 1, A]


def draw_networks(
    n_networks: int, n_states: int, n_actions: int, width: int, n_inputs: int, random: np.random.Generator
) -> Networks:
    """Weights from a normal law cut off at two standard deviations, 1/√(inputs) before the cut; biases 0.

    ``n_inputs`` counts the inputs of the first layer (states that are never seen by a network are none).
    """
    N, W = n_networks, width
    return Networks(
        w1=_truncated(random, (N, n_states, W), n_inputs),
        b1=np.zeros((N, 1, W), np.float32),
        w2=_truncated(random, (N, W, W), W),
        b2=np.zeros((N, 1, W), np.float32),
        w3=_truncated(random, (N, W, n_actions), W),
        b3=np.zeros((N, 1, n_actions), np.float32),
    )


def _truncated(random: np.random.Generator, shape: tuple[int, ...], n_inputs: int) -> np.ndarray:
    draws = random.standard_normal(shape, np.float32)
    while True:
        far = np.abs(draws) > 2.0
        if not far.any():
            return draws * np.float32(1.0 / math.sqrt(n_inputs))
        draws[far] = random.standard_normal(int(far.sum()), np.float32)


def like(networks: Networks) -> Networks:
    """Return zeros of the same shapes."""
    return Networks(*(np.zeros_like(part) for part in networks))


def copy_networks(networks: Networks, which: slice = slice(None)) -> Networks:
    """Return a copy, of some of the networks or all."""
    return Networks(*(part[which].copy() for part in networks))


def forward(networks: Networks, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (x₁ [N, U, W], x₂ [N, U, W], q [N, U, A]) of the states [U]."""
    x1 = np.maximum(networks.w1[:, states] + networks.b1, 0)
    x2 = np.maximum(x1 @ networks.w2 + networks.b2, 0)
    return x1, x2, x2 @ networks.w3 + networks.b3


def backward(networks: Networks, x1: np.ndarray, x2: np.ndarray, dq: np.ndarray) -> Networks:
    """Return the gradient of what has the derivatives ``dq`` [N, U, A] by q; ``w1`` is [N, U, W], a row per state."""
    d2 = (dq @ networks.w3.swapaxes(1, 2)) * (x2 > 0)
    d1 = (d2 @ networks.w2.swapaxes(1, 2)) * (x1 > 0)
    return Networks(
        w1=d1,
        b1=d1.sum(axis=1, keepdims=True),
        w2=x1.swapaxes(1, 2) @ d2,
        b2=d2.sum(axis=1, keepdims=True),
        w3=x2.swapaxes(1, 2) @ dq,
        b3=dq.sum(axis=1, keepdims=True),
    )


def adam(
    networks: Networks,
    moments: tuple[Networks, Networks],
    gradient: Networks,
    place: np.ndarray,
    rate: float,
    step: int,
) -> None:
    """Take one step of Adam, in place.

    ``place`` [S] is where a state's row is in ``gradient.w1``; ABSENT for states that are not in this batch and UNMET
    for those that were in none so far. ``step`` counts from 1.
    """
    root = math.sqrt(1.0 - BETA2**step)
    constants = (BETA1, 1.0 - BETA1, BETA2, 1.0 - BETA2, rate * root / (1.0 - BETA1**step), EPSILON * root)
    c = np.array(constants, np.float32)
    first, second = moments
    adam_rows(networks.w1, first.w1, second.w1, gradient.w1, place, c)
    for name in Networks._fields[1:]:
        w, m, v, g = (getattr(one, name).reshape(-1) for one in (networks, first, second, gradient))
        adam_flat(w, m, v, g, c)


@primitive
def _adam_entry(w, m, v, g, i, c):
    m[i] = c[0] * m[i] + c[1] * g
    v[i] = c[2] * v[i] + c[3] * g * g
    w[i] -= c[4] * m[i] / (np.sqrt(v[i]) + c[5])


@kernel
def adam_flat(w, m, v, g, c):
    """Adam on flat arrays; ``c`` is (β₁, 1−β₁, β₂, 1−β₂, rate, ε), the bias corrections in the last two."""
    for i in range(w.shape[0]):
        _adam_entry(w, m, v, g[i], i, c)


@kernel
def adam_rows(w, m, v, g, place, c):
    """Adam on the rows [N, S, W] of the states that were met; ``g`` [N, U, W] holds those of this batch."""
    zero = np.float32(0.0)
    for n in range(w.shape[0]):
        for s in range(w.shape[1]):
            u = place[s]
            if u == UNMET:
                continue
            if u >= 0:
                for i in range(w.shape[2]):
                    _adam_entry(w[n, s], m[n, s], v[n, s], g[n, u, i], i, c)
            else:
                for i in range(w.shape[2]):
                    _adam_entry(w[n, s], m[n, s], v[n, s], zero, i, c)


# --- the planner ----------------------------------------------------------------------------------------------


@dataclass
class Replay:
    """The last C transitions, number i in slot i mod C."""

    index: Annotated[np.ndarray, "int64 [C, 3]"]  # s, a, s'
    reward: Annotated[np.ndarray, "float32 [C]"]
    goes_on: Annotated[np.ndarray, "float32 [C]"]  # 0 where an end was reached, else 1
    mask: Annotated[np.ndarray, "float32 [C, N]"]  # a column for each network, none where all are 1
    noise: Annotated[np.ndarray, "float32 [C, Z]"]  # the same, none where there is no noise
    n_seen: int = 0

    def add(self, seen: Transition, ends: bool) -> None:
        """Keep a transition."""
        slot = self.n_seen % len(self.reward)
        self.index[slot] = seen.s, seen.a, seen.s2
        self.reward[slot] = seen.r
        self.goes_on[slot] = 0.0 if ends else 1.0
        self.n_seen += 1


@dataclass
class DQNLearner:
    """The networks and what training them needs."""

    now: Networks
    first: Networks  # moments of the gradient, for Adam
    second: Networks
    prior: np.ndarray  # float32 [N, S, A]: c p_n(s)[a]
    target: Networks
    target_q: np.ndarray  # float32 [N, S, A]: Q⁻_n(s, a), where up to date
    up_to_date: np.ndarray  # bool [S]
    place: np.ndarray  # int64 [S]: see `adam`
    head: Networks  # of one network: the one that plays this episode
    head_index: int = 0
    n_steps: int = 0  # of training


LEARNED = (  # names of what a file holds of a DQNLearner
    *(f"learner.{name}" for name in ("prior", "target_q", "up_to_date", "place", "head_index", "n_steps")),
    *(
        f"learner.{group}.{name}"
        for group in ("now", "first", "second", "target", "head")
        for name in Networks._fields
    ),
)


@dataclass
class DQNMemory:
    """Transitions seen, how many of them were learned from, and the networks (None before the first decision)."""

    replay: Replay
    discount: float
    n_inputs: int
    n_learned: int = 0
    new_head: bool = True  # an episode begins: draw the network that plays it
    learner: DQNLearner | None = None


@kernel
def _draw_slots(rng, n, out):
    for i in range(out.shape[0]):
        out[i] = below(rng, n)


@kernel
def _draw_marks(rng, chance, mask, noise):
    """Draw the masks and the noise of one transition, where they are kept at all."""
    for n in range(mask.shape[0]):
        mask[n] = 1.0 if uniform(rng) < chance else 0.0
    for n in range(noise.shape[0]):
        noise[n] = normal(rng)


@kernel
def _loss_gradient(
    q, prior, target_q, allowed, index, reward, goes_on, mask, noise, sigma, discount, place, dq
):
    """Write the derivatives of the loss by every output into ``dq`` [N, U, A], which is zero before."""
    N, B = q.shape[0], index.shape[0]
    for n in range(N):
        for b in range(B):
            s, a, s2 = index[b, 0], index[b, 1], index[b, 2]
            target = reward[b]
            if goes_on[b] > 0.0:
                best = np.float32(-np.inf)
                for a2 in range(q.shape[2]):
                    if allowed[s2, a2]:
                        best = max(best, target_q[n, s2, a2])
                target += discount * best
            if noise.shape[1] > 0:
                target += sigma * noise[b, n]
            weight = mask[b, n] if mask.shape[1] > 0 else np.float32(1.0)
            error = q[n, place[s], a] + prior[n, s, a] - target
            dq[n, place[s], a] += np.float32(2.0) / np.float32(B) * weight * error


@dataclass(frozen=True, kw_only=True)
class BootstrappedDQN(Planner):
    """Bootstrapped DQN with randomised priors: values by an ensemble of networks, no model.

    Parameters
    ----------
    n_networks
        N, networks in the ensemble.
    n_hidden
        Units in each of the two hidden layers.
    prior_scale
        c, the weight of the prior networks.
    learning_rate
        Of Adam.
    batch_size
        B, transitions for a step of training.
    replay_size
        Transitions that are remembered, the last ones.
    min_replay
        Transitions to see before training begins.
    train_period, target_period
        Train after every so many real steps; renew the targets after so many steps of training.
    mask_probability
        With which a network takes a transition into account.
    noise_scale
        σ, standard deviation of the noise on the rewards of each network.

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

    keeps: ClassVar[tuple[str, ...]] = (
        *(f"replay.{name}" for name in ("index", "reward", "goes_on", "mask", "noise", "n_seen")),
        *("n_inputs", "n_learned", "new_head"),
    )

    n_networks: int = whole_number(20)
    n_hidden: int = whole_number(50)
    prior_scale: float = real_number(5.0, low=0.0, high=LARGEST)
    learning_rate: float = positive_number(1e-3)
    batch_size: int = whole_number(128)
    replay_size: int = whole_number(10_000)
    min_replay: int = 128
    train_period: int = whole_number(1)
    target_period: int = whole_number(4)
    mask_probability: float = real_number(1.0, low=0.0, high=1.0, open_low=True)
    noise_scale: float = real_number(0.0, low=0.0, high=LARGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.integer(self.min_replay, "min_replay", high=self.replay_size)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        weights = float(self.n_networks) * self.n_hidden * (n_states + n_actions + self.n_hidden)
        steps = float(self.n_networks) * self.batch_size * self.n_hidden / 10  # quick ones
        tables = 20 * weights + 48.0 * self.replay_size
        return estimate(n_states, n_actions, models=0.0, steps=steps, bytes=tables)

    def start(self, belief: Belief, discount: float) -> DQNMemory:
        N = self.n_networks
        n_masks, n_noises = N if self.mask_probability < 1.0 else 0, N if self.noise_scale > 0.0 else 0
        replay = zeros(Replay, C=self.replay_size, N=n_masks, Z=n_noises)
        return DQNMemory(replay, discount, n_inputs=int((~belief.space.terminal).sum()))

    def act(self, memory: DQNMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return int(best_action_of(self._decide(memory, belief, state, rng), belief.space.allowed, state, rng))

    def plan(self, memory: DQNMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        q = self._decide(memory, belief, state, rng)
        action = int(best_action_of(q, belief.space.allowed, state, rng))
        learner = _born(memory)
        spread = (forward(learner.now, np.array([state]))[2][:, 0] + learner.prior[:, state]).std(axis=0)
        actions = np.flatnonzero(belief.space.allowed[state])
        weighed = candidates(actions, q[actions], spread[actions], self.n_networks)
        details = {"network": learner.head_index, "training_steps": learner.n_steps}
        return Plan(action, float(q[action]), weighed, details=details)

    def learn(self, memory: DQNMemory, belief: Belief, seen: Transition) -> None:
        memory.replay.add(seen, ends=bool(belief.space.terminal[seen.s2]))

    def begin(self, memory: DQNMemory, belief: Belief, state: int) -> None:
        memory.new_head = True

    def learned(self, memory: DQNMemory) -> dict[str, np.ndarray]:
        names = () if memory.learner is None else LEARNED
        return super().learned(memory) | {name: np.array(attrgetter(name)(memory)) for name in names}

    def relearn(self, memory: DQNMemory, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        sizes = (belief.n_states, belief.n_actions, belief.n_states)
        index, n_seen = memory.replay.index, memory.replay.n_seen
        if (index < 0).any() or (index >= sizes).any() or not 0 <= memory.n_learned <= n_seen:
            raise ValueError("the file's replayed transitions are damaged")
        if LEARNED[0] not in arrays:
            return
        learner = memory.learner = self._new_learner(memory, belief, np.ones(4, np.uint64))
        for name in LEARNED:
            put_array(memory, name, arrays[name])
        if not 0 <= learner.head_index < self.n_networks:
            raise ValueError("the file's networks are damaged")
        learner.place[:] = np.where(learner.place == UNMET, UNMET, ABSENT)

    def _decide(self, memory: DQNMemory, belief: Belief, state: int, rng: np.ndarray) -> np.ndarray:
        """Learn from what was seen since the last decision; the values of the network that plays, [A]."""
        if memory.learner is None:
            memory.learner = self._new_learner(memory, belief, rng)
        learner = memory.learner
        if memory.new_head:
            # learn from all but the end of the last episode
            self._catch_up(memory, belief, rng, memory.replay.n_seen - 1)
            learner.head_index = int(below(rng, self.n_networks))
            learner.head = copy_networks(learner.now, slice(learner.head_index, learner.head_index + 1))
            memory.new_head = False
        self._catch_up(memory, belief, rng, memory.replay.n_seen)
        return forward(learner.head, np.array([state]))[2][0, 0] + learner.prior[learner.head_index, state]

    def _new_learner(self, memory: DQNMemory, belief: Belief, rng: np.ndarray) -> DQNLearner:
        """Make all networks, drawn with a stream that begins where ``rng`` is."""
        random = np.random.default_rng([int(next_word(rng)) for _ in range(4)])
        S, A = belief.n_states, belief.n_actions
        shape = (self.n_networks, S, A, self.n_hidden, memory.n_inputs)
        now, prior, target, target_prior = (draw_networks(*shape, random) for _ in range(4))
        every = np.arange(S)
        scale = np.float32(self.prior_scale)
        return DQNLearner(
            now=now,
            first=like(now),
            second=like(now),
            prior=scale * forward(prior, every)[2],
            target=target,
            target_q=forward(target, every)[2] + scale * forward(target_prior, every)[2],
            up_to_date=np.ones(S, bool),
            place=np.full(S, UNMET),
            head=copy_networks(now, slice(0, 1)),
        )

    def _catch_up(self, memory: DQNMemory, belief: Belief, rng: np.ndarray, until: int) -> None:
        """Train for the transitions before number ``until`` that were not yet learned from."""
        replay, learner = memory.replay, _born(memory)
        capacity = len(replay.reward)
        while memory.n_learned < until:
            slot = memory.n_learned % capacity
            _draw_marks(rng, self.mask_probability, replay.mask[slot], replay.noise[slot])
            memory.n_learned += 1
            size = min(memory.n_learned, capacity)
            if size >= self.min_replay and memory.n_learned % self.train_period == 0:
                slots = np.empty(self.batch_size, np.int64)
                _draw_slots(rng, size, slots)
                self._train(learner, replay, slots, belief.space.allowed, memory.discount)

    def _train(
        self, learner: DQNLearner, replay: Replay, slots: np.ndarray, allowed: np.ndarray, discount: float
    ) -> None:
        """Take a step of Adam for all networks on the transitions in ``slots`` [B]."""
        index = replay.index[slots]
        states = np.unique(index[:, 0])
        _refresh_targets(learner, np.unique(index[:, 2]))
        place = learner.place
        place[place >= 0] = ABSENT
        place[states] = np.arange(len(states))
        x1, x2, q = forward(learner.now, states)
        dq = np.zeros_like(q)
        _loss_gradient(
            q,
            learner.prior,
            learner.target_q,
            allowed,
            index,
            replay.reward[slots],
            replay.goes_on[slots],
            replay.mask[slots],
            replay.noise[slots],
            np.float32(self.noise_scale),
            np.float32(discount),
            place,
            dq,
        )
        learner.n_steps += 1
        gradient = backward(learner.now, x1, x2, dq)
        adam(
            learner.now, (learner.first, learner.second), gradient, place, self.learning_rate, learner.n_steps
        )
        if learner.n_steps % self.target_period == 0:
            learner.target = copy_networks(learner.now)
            learner.up_to_date[:] = False


def _refresh_targets(learner: DQNLearner, states: np.ndarray) -> None:
    """Compute the target values of the states that have none since the targets were renewed."""
    due = states[~learner.up_to_date[states]]
    if len(due):
        learner.target_q[:, due] = forward(learner.target, due)[2] + learner.prior[:, due]
        learner.up_to_date[due] = True


def _born(memory: DQNMemory) -> DQNLearner:
    assert memory.learner is not None, "networks are drawn at the first decision"
    return memory.learner
