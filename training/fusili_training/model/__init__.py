"""The trained model: two backbones, their heads, and the weights that it starts from."""
