"""Exporting trained checkpoints as ONNX model bundles."""
