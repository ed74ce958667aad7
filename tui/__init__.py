"""Everything a person sees: the commands and the Textual app.

Reads run directories and writes requests into them; never imports `core.worker` or torch.
"""
