import sys

if sys.version_info < (3, 11):  # noqa: UP036
    import tools  # noqa: F401  (it says what to do; __main__ cannot be read by Python 2)
