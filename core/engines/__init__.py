"""Engines: who rings the doorbells that stores submit."""
