"""Many pairs at once: a table of scores and recordings -> a folder of results and one summary."""
