"""The workloads and the pictures of the course: small, plain, and written to be read."""
