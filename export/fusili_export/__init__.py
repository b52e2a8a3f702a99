"""Turning trained checkpoints into ONNX model bundles."""
