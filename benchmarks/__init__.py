"""The figures of DESIGN 18, measured: `python -m benchmarks [NAME ...] [--quick] [--markdown]`."""
