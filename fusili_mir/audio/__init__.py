"""Audio: a file or samples -> a recording at the model's sampling rate, its level and its onset envelope."""
