"""Code that several benchmark scripts share; not part of the package."""
