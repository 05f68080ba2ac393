"""A tool's file as data: as a data frame, as the spans of ``plotting.timeline``, or as the stacks of
``plotting.icicle``. Each function reads one kind of file and says what its rows and columns are.
"""
