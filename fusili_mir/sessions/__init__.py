"""Running ONNX graphs: their files, the devices that they run on, and several batches at once."""
