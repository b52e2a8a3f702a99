"""Many scores and recordings: an index of them, and which of them a query belongs to, and where."""
