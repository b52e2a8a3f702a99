"""One module per command; each holds a click command named `command`."""
