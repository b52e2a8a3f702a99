"""Pages: a score or images -> page images, systems, staves, measures and note heads; segments cut from them."""
