"""The trained model: two encoders, their heads, and the weights they start from."""
