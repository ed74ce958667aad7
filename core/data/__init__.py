"""From a file or hub set to label tensors: sources → rows → templates → tokens and masks.

Model libraries are imported only inside the functions that tokenise or ask a hub.
"""

from __future__ import annotations

from llmtui.core.data.batches import collate
from llmtui.core.data.check import check_dataset
from llmtui.core.data.prepare import Prepared, prepare
from llmtui.core.data.prompts import decode_answer, prompt_text
from llmtui.core.data.token_store import TokenRows

__all__ = ["Prepared", "TokenRows", "check_dataset", "collate", "decode_answer", "prepare", "prompt_text"]
