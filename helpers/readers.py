"""A tool's file as data: a data frame, the spans of ``plotting.timeline``, or the stacks of
``plotting.icicle``. Each function reads one kind of file and says what its rows and columns are.
"""
