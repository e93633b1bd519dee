"""Entry point of ``python -m bamdp``."""

import sys

from bamdp.cli import main

sys.exit(main())
