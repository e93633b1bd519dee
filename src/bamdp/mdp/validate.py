"""The old place of ``used_rows``, now in :mod:`bamdp.mdp.build`; remove it when nothing imports it from here."""

from bamdp.mdp.build import used_rows

__all__ = ["used_rows"]
