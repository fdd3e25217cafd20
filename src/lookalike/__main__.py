"""``python -m lookalike`` is the command ``lookalike``."""

import sys

from lookalike.app.command import main

sys.exit(main())
