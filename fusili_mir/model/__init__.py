"""Model: a bundle -> an encoder that turns segments and clips into embeddings."""
