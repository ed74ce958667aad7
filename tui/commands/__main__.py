"""`python -m llmtui.tui.commands`: the same as `llmtui`."""

import sys

from llmtui.tui.commands import main

if __name__ == "__main__":
    sys.exit(main())
