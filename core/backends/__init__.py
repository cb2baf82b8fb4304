"""Implementations of the backend contract."""
