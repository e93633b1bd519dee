"""Old place of names that are now in :mod:`bamdp.mdp.build`; goes when nothing imports them from here."""

from bamdp.mdp.build import entry_positions, used_rows

__all__ = ["entry_positions", "used_rows"]
