"""The host's socket: what other commands of this machine ask of a running host."""
