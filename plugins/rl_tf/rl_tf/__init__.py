"""TensorFlow graph backend of rlcore. Importing this package does not import TensorFlow."""
