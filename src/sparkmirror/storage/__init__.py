"""Connect's offsets topic and the progress topic."""
