"""Adapters to the places where people talk; they draw and decide nothing."""
