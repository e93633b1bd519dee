"""The deep-sea comparison with Bootstrapped DQN: Figure 3 (Appendix D) of Grover, Basu & Dimitrakakis (2020), and more.

A *contest* is a world of a size under an objective, a *contestant* an agent with all its parameters; together they
are a :class:`~bamdp.settings.Setting`. A run becomes a *record*, the numbers of its bad episodes, in a file with one
JSON object per line. Figures and tables are made from the records alone.

Rewards are unknown to all agents. Who learns them with a model has the same reward prior, whatever its planner.
"""

from bamdp.figure3.contests import CONTESTANTS, CONTESTS, PAPER, Contest, Contestant
from bamdp.figure3.drawing import draw
from bamdp.figure3.records import Record, collect, read_records, records_of, summary

__all__ = [
    "CONTESTANTS",
    "CONTESTS",
    "PAPER",
    "Contest",
    "Contestant",
    "Record",
    "collect",
    "draw",
    "read_records",
    "records_of",
    "summary",
]
