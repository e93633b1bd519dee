"""``python -m bamdp``: the command line."""

import sys

from bamdp.cli import main

sys.exit(main())
