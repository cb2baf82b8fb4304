"""Turns: the one loop, the answers to pending calls, and what follows from each stop."""
