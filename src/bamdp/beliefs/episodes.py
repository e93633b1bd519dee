"""Episodes: where they end, where they begin, and what an end is worth.

**The objective** says what follows the end of an episode.

- ``"episode"``: nothing. A state in which an episode ends is terminal, its value is 0.
- ``"lifetime"``: the next episode, so that what is learned now is worth something then. A state in which an episode
  ends is an ordinary state of the model. There is one thing to do in it, action 0, *begin again*, which pays nothing
  and leads to a start state. The law of start states is a row like any other, under the same prior, and is learned
  from all episodes that were seen to begin; sampled and mean models contain it. Beginning again takes one step of
  time, as it does in dm_env and in vector environments that reset themselves: an end is worth γ times a start.

**Where episodes end** is learned as well, in one of two ways.

- By state (the default): a state that was entered with ``terminated`` ends every episode that enters it. All that is
  known beforehand goes into ``terminal``.
- By transition (``end`` names a state): any transition may end the episode, whatever state the environment shows then,
  even one that is quite alive at other times, as the player's hand in Blackjack. Such a transition is learned as one
  to the state ``end``, which stands for nothing else. With "episode", ``end`` is a state like any other that
  nobody has seen until the first one: a world that never ends is not planned for as if its end, worth 0, might be
  anywhere.

**Truncation** is no end. The transition before it is learned as it was, nothing is learned about where the environment
was put afterwards but that episodes may begin there.

All end states share what is known of starts: each has a row of its own, and every start is learned in all of them. It
is evidence only once, for the weights of a mixture or of finite models, too: that in the row of the first end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks

OBJECTIVES = ("episode", "lifetime")
BEGIN_AGAIN = 0  # the action of an end state


@dataclass
class Episodes:
    """What a belief knows of episodes; the arrays are written to."""

    objective: str
    end: int | None  # the state that stands for every end, if there is one
    ends: NDArray[np.bool_]  # [S]: states in which an episode ends
    starts: NDArray[np.int64]  # [S]: how often an episode began in each
    acted: NDArray[np.bool_]  # [S]: states in which something was done, so that they are no ends

    @property
    def restarts(self) -> bool:
        """Whether an end is followed by a start."""
        return self.objective == "lifetime"


def new_episodes(objective: Any, end: Any, terminal: NDArray[np.bool_]) -> Episodes:
    """Return episodes of which nothing is known yet but what is known beforehand."""
    objective = _checks.one_of(objective, "objective", OBJECTIVES)
    ends = terminal.copy()
    if end is not None:
        end = _checks.index(end, "end", len(ends))
        ends[end] |= objective == "lifetime"
    return Episodes(objective, end, ends, np.zeros(len(ends), np.int64), np.zeros(len(ends), bool))
