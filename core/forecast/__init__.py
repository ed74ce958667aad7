"""VRAM and disk by arithmetic, at once and without torch: will it fit? All figures are estimates (≈)."""
