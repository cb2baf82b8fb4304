"""Running a host as a service of a machine or in a container."""
