"""Episodes: where they start and end, and the value of an end.

**The objective** determines what follows the end of an episode.

- ``"episode"``: nothing. A state in which an episode ends is terminal and has value 0.
- ``"lifetime"``: the next episode, so that learning in this one pays off later. A state in which an episode ends is an
  ordinary state of the model with a single action, action 0 (*begin again*), which pays nothing and leads to a start
  state. The distribution of start states is a row like any other, with the same prior, and is learned from all
  observed starts; sampled and mean models contain it. Beginning again takes one time step, as in dm_env and in vector
  environments with automatic reset: an end is worth γ times a start.

**Where episodes end** is learned too, in one of two ways.

- By state (the default): a state that was entered with ``terminated`` ends every episode that enters it. Terminal
  states known beforehand are passed as ``terminal``.
- By transition (``end`` names a state): any transition may end the episode, whatever state the environment then shows,
  even one from which other episodes continue, such as the player's hand in Blackjack. The belief learns such a
  transition as one to the state ``end``, which represents nothing else. With ``"episode"``, ``end`` is an ordinary
  state that remains unseen until the first episode ends, so that an agent in an environment that never ends does not
  plan as if any transition might lead to an end worth 0.

**Truncation** is not an end. The belief learns the last transition as usual. From the state to which the environment
is then reset, it learns only that episodes may begin there.

All end states share the knowledge about starts: each has a row of its own, and every start is learned in all of these
rows. A start counts as evidence only once, in the row of the first end; this also holds for the weights of a mixture
or of finite models.
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
    """A belief's record of episodes; its arrays are updated in place."""

    objective: str
    end: int | None  # the state that represents every end, if any
    ends: NDArray[np.bool_]  # [S]: states in which an episode ends
    starts: NDArray[np.int64]  # [S]: number of episodes that began in each state
    acted: NDArray[np.bool_]  # [S]: states in which an action was taken, which cannot be ends

    @property
    def restarts(self) -> bool:
        """True if a new episode follows each end."""
        return self.objective == "lifetime"


def new_episodes(objective: Any, end: Any, terminal: NDArray[np.bool_]) -> Episodes:
    """Return the record before the first episode, with the ends that are known beforehand."""
    objective = _checks.one_of(objective, "objective", OBJECTIVES)
    ends = terminal.copy()
    if end is not None:
        end = _checks.index(end, "end", len(ends))
        ends[end] |= objective == "lifetime"
    return Episodes(objective, end, ends, np.zeros(len(ends), np.int64), np.zeros(len(ends), bool))
