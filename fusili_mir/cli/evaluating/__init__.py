"""The three programs of `fusili-mir evaluate`, a module for each, and what they share."""
