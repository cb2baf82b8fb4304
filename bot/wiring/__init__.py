"""Puts a host together: the only package that names the concrete classes of core and the platforms."""
