"""The training loop: recipe, optimiser, checkpoints, validation, resuming."""
