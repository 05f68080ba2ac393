import tools  # noqa: F401  (in another Python than the course's, it says what to do)
