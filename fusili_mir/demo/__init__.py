"""Demo: the example that comes with the package, aligned and compared with the truth."""
