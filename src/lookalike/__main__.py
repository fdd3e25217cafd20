"""``python -m lookalike`` is the command ``lookalike``."""

import sys

from lookalike.command import main

sys.exit(main())
