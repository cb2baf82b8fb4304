"""Secret values and their masking at every sink."""
