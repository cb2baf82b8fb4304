"""Ways to a model: the clients behind `core.contracts.models.ModelClient`."""
