"""The places (Presets, Runs, Run, the editor) and the dialogs that open over them."""
