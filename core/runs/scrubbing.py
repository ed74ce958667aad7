"""Access tokens taken out of what leaves the run directory."""

from __future__ import annotations

import re
from typing import Final

# Hugging Face, OpenAI-like, GitHub, Weights & Biases in a command line.
_TOKENS: Final = re.compile(
    r"\b(hf_|sk-|ghp_|github_pat_)[A-Za-z0-9_-]{8,}|((?:WANDB_API_KEY|HF_TOKEN|HUGGING_FACE_HUB_TOKEN)=)\S+"
)


def scrub(text: str) -> str:
    """The text with what looks like an access token cut to its kind: `hf_…`."""
    return _TOKENS.sub(lambda match: f"{match[1] or match[2]}…", text)
