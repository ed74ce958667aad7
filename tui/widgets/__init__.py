"""What the places are made of: panes that draw their own lines and repaint only what changed."""
