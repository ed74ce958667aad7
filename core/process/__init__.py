"""Runs as processes: launching, supervising, the queue for cards, stopping, causes of death, adoption. No torch."""
