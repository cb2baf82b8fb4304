"""Schema migrations, run by `core.stores.schema`."""
