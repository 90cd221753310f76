"""The entry of the container image: what its arguments and environment variables mean."""
